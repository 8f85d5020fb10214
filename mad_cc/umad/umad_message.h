// What programs write to umad files and give to their ioctls, read from bytes, and what they read
// there, as bytes. `header_size` is kHeaderSize or kOldHeaderSize.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "mad_cc/port/mad_port.h"
#include "mad_cc/umad/umad_abi.h"

namespace rocefs::umad {

// One write(2): a MAD, or a message that RMPP is to carry.
struct Request {
  Header header;
  mad::Address to;
  mad::Message message;  // as long as the headers of its class, at least
};

// The longest write: more than 31 pages may be but the first part of a longer one, which the kernel
// hands over in parts.
inline constexpr size_t kMaxWrite = 30 * 4096;

// EINVAL for what is too short or names no possible agent, as ib_umad_write(); EMSGSIZE for what is
// longer than kMaxWrite.
Result<Request> parse_request(std::string_view bytes, size_t header_size);

// The argument of kRegisterAgent and of kRegisterAgent2. EINVAL for another length, and for
// unknown flags. What else is wrong with them the port says.
Result<MadRegistration> parse_registration(std::string_view bytes);
Result<MadRegistration> parse_registration2(std::string_view bytes);

// What is read: a header, and what follows it.
std::string format(const Header& header, std::span<const uint8_t> message, size_t header_size);
// The header of a message that came from there, but for its agent and its length.
Header received_from(const mad::Address& from);

}  // namespace rocefs::umad
