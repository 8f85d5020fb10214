// A line of kernel/debug/rocefs/hosts/NAME/interfaces.
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
};

struct InterfaceLine {
  std::string name;
  std::array<uint8_t, 6> mac{};
  uint32_t mtu = 0;
  uint32_t speed = 0;  // Mb/s; 0: not known
  std::vector<InterfaceAddress> addresses;
};

// A host, as its files describe it.
struct HostDescription {
  std::string name;
  std::vector<std::string> devices;
  std::vector<InterfaceLine> interfaces;
  bool running = false;  // or attached
  bool attached = false;
};

// EINVAL for a malformed line.
Result<InterfaceLine> parse_interface(std::string_view line);

// All hosts of the mount, in order of their names. The mount is trusted.
Result<std::vector<HostDescription>> read_hosts(const std::string& mount_point);

// The host of this name. ENOENT, with the names of all, if there is none.
Result<const HostDescription*> find_host(const std::vector<HostDescription>& all,
                                         const std::string& name, const std::string& mount_point);

// Lines of /etc/hosts: all hosts by name, and each interface as NAME-INTERFACE.
std::string host_names(const std::vector<HostDescription>& all);

}  // namespace rocefs
