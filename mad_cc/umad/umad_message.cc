#include "mad_cc/umad/umad_message.h"

#include <cerrno>
#include <cstring>

namespace rocefs::umad {
namespace {

constexpr size_t kMinMad = 36;  // IB_MGMT_RMPP_HDR: so much the kernel reads before it looks

template <class T>
bool load(std::string_view bytes, T& into) {
  if (bytes.size() != sizeof into) return false;
  std::memcpy(&into, bytes.data(), sizeof into);
  return true;
}

}  // namespace

Result<Request> parse_request(std::string_view bytes, size_t header_size) {
  if (bytes.size() < header_size + kMinMad)
    return errorf(EINVAL, "{} octets are less than a header and {} of a MAD", bytes.size(),
                  kMinMad);
  if (bytes.size() > kMaxWrite)
    return errorf(EMSGSIZE, "{} octets: a write has at most {}", bytes.size(), kMaxWrite);
  Request request{};
  std::memcpy(&request.header, bytes.data(), header_size);
  const Header& header = request.header;
  if (header.agent >= kMaxAgents) return errorf(EINVAL, "no such agent: {}", header.agent);
  request.message.assign(bytes.begin() + static_cast<long>(header_size), bytes.end());
  uint8_t mgmt_class = request.message[1];
  if (request.message.size() < mad::data_offset(mgmt_class))
    return errorf(EINVAL, "{} octets are less than the headers of class {:#x}",
                  request.message.size(), mgmt_class);
  request.to = {.lid = __builtin_bswap16(header.lid),
                .qpn = __builtin_bswap32(header.qpn),
                .qkey = __builtin_bswap32(header.qkey),
                .sl = header.sl,
                .path_bits = header.path_bits,
                .pkey_index = header.pkey_index};
  return request;
}

Result<MadRegistration> parse_registration(std::string_view bytes) {
  Registration from;
  if (!load(bytes, from))
    return errorf(EINVAL, "{} octets: not the size of a registration", bytes.size());
  MadRegistration registration;
  registration.qpn = from.qpn;
  registration.rmpp_version = from.rmpp_version;
  if (from.mgmt_class == 0) return registration;
  registration.mgmt_class = from.mgmt_class;
  registration.class_version = from.class_version;
  registration.oui = uint32_t{from.oui[0]} << 16 | uint32_t{from.oui[1]} << 8 | from.oui[2];
  for (size_t word = 4; word-- > 0;) {
    registration.methods <<= 32;
    registration.methods |= from.methods[word];
  }
  return registration;
}

Result<MadRegistration> parse_registration2(std::string_view bytes) {
  Registration2 from;
  if (!load(bytes, from))
    return errorf(EINVAL, "{} octets: not the size of a registration", bytes.size());
  if (from.qpn > 1) return errorf(EINVAL, "QP {}: MADs use QP 0 or 1", from.qpn);
  if (from.flags & ~kUserRmpp)
    return errorf(EINVAL, "flags {:#x}: {:#x} are known", from.flags, kUserRmpp);
  MadRegistration registration;
  registration.qpn = static_cast<uint8_t>(from.qpn);
  registration.rmpp_version = from.rmpp_version;
  registration.user_rmpp = (from.flags & kUserRmpp) != 0;
  if (from.mgmt_class == 0) return registration;
  if (from.oui > 0xffffff) return errorf(EINVAL, "OUI {:#x} is above 0xffffff", from.oui);
  registration.mgmt_class = from.mgmt_class;
  registration.class_version = from.class_version;
  registration.oui = from.oui;
  registration.methods = from.methods[1];
  registration.methods <<= 64;
  registration.methods |= from.methods[0];
  return registration;
}

std::string format(const Header& header, std::span<const uint8_t> message, size_t header_size) {
  std::string bytes;
  bytes.reserve(header_size + message.size());
  bytes.append(reinterpret_cast<const char*>(&header), header_size);
  bytes.append(reinterpret_cast<const char*>(message.data()), message.size());
  return bytes;
}

Header received_from(const mad::Address& from) {
  Header header{};
  header.qpn = __builtin_bswap32(from.qpn);
  header.lid = __builtin_bswap16(from.lid);
  header.sl = from.sl;
  header.path_bits = from.path_bits;
  header.pkey_index = from.pkey_index;
  return header;
}

}  // namespace rocefs::umad
