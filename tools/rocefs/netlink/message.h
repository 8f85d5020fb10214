// Netlink messages: one that is built, and the attributes of one that was received.
#pragma once

#include <linux/netlink.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rocefs {

class NetlinkMessage {
 public:
  // `port`: netlink port of the receiver.
  NetlinkMessage(uint16_t type, uint16_t flags, uint32_t sequence, uint32_t port);

  // Octets behind the header that are no attribute.
  void raw(const void* data, size_t size);
  void put(uint16_t type, const void* data, size_t size);
  void u8(uint16_t type, uint8_t value) { put(type, &value, sizeof value); }
  void u32(uint16_t type, uint32_t value) { put(type, &value, sizeof value); }
  void u64(uint16_t type, uint64_t value) { put(type, &value, sizeof value); }
  void text(uint16_t type, const std::string& value) { put(type, value.c_str(), value.size() + 1); }
  // A nest: attributes until end() are in it.
  size_t begin(uint16_t type);
  void end(size_t nest);

  size_t size() const { return bytes_.size(); }
  // With its length in the header.
  std::string finish() &&;

 private:
  std::string bytes_;
};

// The number in the attribute of a request, of 1 to 8 octets; nullopt if it is not there.
// `attributes`: what follows the header. Untrusted.
std::optional<uint64_t> attribute_number(std::string_view attributes, uint16_t type);
// The text in an attribute; nullopt if it is not there.
std::optional<std::string> attribute_text(std::string_view attributes, uint16_t type);

}  // namespace rocefs
