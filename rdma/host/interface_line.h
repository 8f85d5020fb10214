// A line of kernel/debug/rocefs/hosts/NAME/interfaces (interface_text.h writes it).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace rocefs {

struct InterfaceAddress {
  bool ipv6 = false;
  std::array<uint8_t, 16> bytes{};  // IPv4: the first four
  uint8_t prefix = 0;
  std::string text;  // without the prefix

  size_t size() const { return ipv6 ? 16 : 4; }
  // Whether the other address is in this one's network.
  bool covers(const InterfaceAddress& other) const;
  // The network's own address; `text` stays.
  InterfaceAddress network() const;
};

struct InterfaceLine {
  std::string name;
  std::array<uint8_t, 6> mac{};
  uint32_t mtu = 0;
  uint32_t speed = 0;  // Mb/s; 0: not known
  std::vector<InterfaceAddress> addresses;
};

// EINVAL for a malformed line.
Result<InterfaceLine> parse_interface(std::string_view line);

// Networks of other hosts, each once, that are none of a host's `own` interfaces. They are reached
// directly through its first interface, as on a rail's switch.
std::vector<InterfaceAddress> networks_beyond(const std::vector<InterfaceLine>& own,
                                              const std::vector<InterfaceLine>& others);

}  // namespace rocefs
