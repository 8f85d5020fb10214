#include "tools/rocefs/netlink/message.h"

#include <cstring>

namespace rocefs {
namespace {

// Octets of the first attribute of this type.
std::optional<std::string_view> attribute(std::string_view attributes, uint16_t type) {
  while (attributes.size() >= NLA_HDRLEN) {
    nlattr header;
    std::memcpy(&header, attributes.data(), sizeof header);
    if (header.nla_len < NLA_HDRLEN || header.nla_len > attributes.size()) break;
    if ((header.nla_type & NLA_TYPE_MASK) == type) {
      return attributes.substr(NLA_HDRLEN, header.nla_len - NLA_HDRLEN);
    }
    size_t whole = NLA_ALIGN(header.nla_len);
    if (whole > attributes.size()) break;
    attributes.remove_prefix(whole);
  }
  return std::nullopt;
}

}  // namespace

NetlinkMessage::NetlinkMessage(uint16_t type, uint16_t flags, uint32_t sequence, uint32_t port) {
  nlmsghdr header{0, type, flags, sequence, port};
  raw(&header, sizeof header);
}

void NetlinkMessage::raw(const void* data, size_t size) {
  bytes_.append(static_cast<const char*>(data), size);
  bytes_.resize(NLMSG_ALIGN(bytes_.size()));
}

void NetlinkMessage::put(uint16_t type, const void* data, size_t size) {
  nlattr header{static_cast<uint16_t>(NLA_HDRLEN + size), type};
  raw(&header, sizeof header);
  raw(data, size);
}

size_t NetlinkMessage::begin(uint16_t type) {
  size_t nest = bytes_.size();
  put(type | NLA_F_NESTED, nullptr, 0);
  return nest;
}

void NetlinkMessage::end(size_t nest) {
  auto size = static_cast<uint16_t>(bytes_.size() - nest);
  std::memcpy(bytes_.data() + nest + offsetof(nlattr, nla_len), &size, sizeof size);
}

std::string NetlinkMessage::finish() && {
  auto size = static_cast<uint32_t>(bytes_.size());
  std::memcpy(bytes_.data() + offsetof(nlmsghdr, nlmsg_len), &size, sizeof size);
  return std::move(bytes_);
}

std::optional<uint64_t> attribute_number(std::string_view attributes, uint16_t type) {
  std::optional<std::string_view> octets = attribute(attributes, type);
  uint64_t number = 0;
  if (!octets || octets->empty() || octets->size() > sizeof number) return std::nullopt;
  std::memcpy(&number, octets->data(), octets->size());
  return number;
}

std::optional<std::string> attribute_text(std::string_view attributes, uint16_t type) {
  std::optional<std::string_view> octets = attribute(attributes, type);
  if (!octets) return std::nullopt;
  return std::string(octets->substr(0, octets->find('\0')));
}

}  // namespace rocefs
