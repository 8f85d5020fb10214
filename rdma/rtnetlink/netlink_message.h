// Messages of netlink(7): a header, a body of the message's type, and attributes.
#pragma once

#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

namespace rocefs::netlink {

using Bytes = std::span<const uint8_t>;

// Takes an object off the front, with its padding. False if it is not whole.
template <class T>
bool take(Bytes& rest, T& out) {
  if (rest.size() < sizeof out) return false;
  std::memcpy(&out, rest.data(), sizeof out);
  rest = rest.subspan(std::min<size_t>(NLMSG_ALIGN(sizeof out), rest.size()));
  return true;
}

// Calls `visit` with the header and the body of each message of a datagram; a malformed one ends
// it.
template <class Visit>
void each_message(Bytes rest, Visit visit) {
  while (rest.size() >= sizeof(nlmsghdr)) {
    nlmsghdr header;
    std::memcpy(&header, rest.data(), sizeof header);
    if (header.nlmsg_len < sizeof header || header.nlmsg_len > rest.size()) return;
    visit(header, rest.subspan(NLMSG_HDRLEN, header.nlmsg_len - NLMSG_HDRLEN));
    rest = rest.subspan(std::min<size_t>(NLMSG_ALIGN(header.nlmsg_len), rest.size()));
  }
}

// Calls `visit` with type and value of each attribute.
template <class Visit>
void each_attribute(Bytes rest, Visit visit) {
  while (rest.size() >= sizeof(rtattr)) {
    rtattr header;
    std::memcpy(&header, rest.data(), sizeof header);
    if (header.rta_len < sizeof header || header.rta_len > rest.size()) return;
    visit(header.rta_type, rest.subspan(RTA_LENGTH(0), header.rta_len - RTA_LENGTH(0)));
    rest = rest.subspan(std::min<size_t>(RTA_ALIGN(header.rta_len), rest.size()));
  }
}

// A request without attributes yet. finish() gives it its length and its sequence number.
template <class Body>
std::string begin(uint16_t type, uint16_t flags, const Body& body) {
  nlmsghdr header{};
  header.nlmsg_type = type;
  header.nlmsg_flags = static_cast<uint16_t>(NLM_F_REQUEST | flags);
  std::string request(NLMSG_SPACE(sizeof body), '\0');
  std::memcpy(request.data(), &header, sizeof header);
  std::memcpy(request.data() + NLMSG_HDRLEN, &body, sizeof body);
  return request;
}

inline void add(std::string& request, uint16_t type, const void* value, size_t size) {
  rtattr attribute{static_cast<unsigned short>(RTA_LENGTH(size)), type};
  size_t at = request.size();
  request.resize(at + RTA_SPACE(size));
  std::memcpy(request.data() + at, &attribute, sizeof attribute);
  std::memcpy(request.data() + at + RTA_LENGTH(0), value, size);
}

inline void add(std::string& request, uint16_t type, uint32_t value) {
  add(request, type, &value, sizeof value);
}

inline void finish(std::string& request, uint32_t sequence) {
  auto* header = reinterpret_cast<nlmsghdr*>(request.data());
  header->nlmsg_len = static_cast<uint32_t>(request.size());
  header->nlmsg_seq = sequence;
}

}  // namespace rocefs::netlink
