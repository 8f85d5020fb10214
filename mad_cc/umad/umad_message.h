// Parsers and formatters of the data that programs write to umad files, pass to ioctls and read.
// `header_size` is kHeaderSize or kOldHeaderSize.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "mad_cc/port/mad_port.h"
#include "mad_cc/umad/umad_abi.h"

namespace rocefs::umad {

// Content of one write(2): a MAD, or a message to be carried by RMPP.
struct Request {
  Header header;
  mad::Address to;
  mad::Message message;  // as long as the headers of its class, at least
};

// Length of the longest write. The kernel splits writes of more than 31 pages.
inline constexpr size_t kMaxWrite = 30 * 4096;

// Fails with EINVAL for data that is too short or has an impossible agent, as ib_umad_write(); with
// EMSGSIZE beyond kMaxWrite.
Result<Request> parse_request(std::string_view bytes, size_t header_size);

// Parses the argument of kRegisterAgent or of kRegisterAgent2. Fails with EINVAL for another length
// and for unknown flags. The port checks the rest.
Result<MadRegistration> parse_registration(std::string_view bytes);
Result<MadRegistration> parse_registration2(std::string_view bytes);

// Formats the result of a read: a header and the message.
std::string format(const Header& header, std::span<const uint8_t> message, size_t header_size);
// Builds the header of a message from `from`, without agent and length.
Header received_from(const mad::Address& from);

}  // namespace rocefs::umad
