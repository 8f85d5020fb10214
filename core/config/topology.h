// Topology: which devices, switches and cables there are. Plain data, read once at start.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/base/time.h"

namespace rocefs {

struct PortSpec {
  std::string netdev;  // the interface's name
  std::array<uint8_t, 6> mac{};
  std::array<uint8_t, 4> ipv4{};
  std::optional<std::array<uint8_t, 16>> ipv6;  // a global one
  uint32_t mtu = 4096;                          // RDMA path MTU: 256, 512, 1024, 2048 or 4096
  int ipv4_line = 0;                            // of the ini file, where it gives the address
};

// Both ports of a device belong to one PCI function.
struct DeviceSpec {
  std::string name;
  std::string pci;              // domain:bus:device.function, as in 0000:2b:00.0
  std::vector<PortSpec> ports;  // port 1, and port 2 if there is one
};

// How a port is named where a device alone does not say enough: DEVICE is its port 1, DEVICE/2 its
// second. DEVICE/1 is understood.
struct PortName {
  std::string device;
  unsigned number = 1;
  std::string text() const { return number == 1 ? device : device + "/" + std::to_string(number); }
};
// Nothing for what cannot be one; whether there is such a port is another question.
std::optional<PortName> parse_port_name(std::string_view text);

struct SwitchSpec {
  std::string name;
};
// How many cables a switch takes at most. A management datagram has an octet for a port's number,
// and 255 is not one: it means all (IBTA volume 1, 14.2.5.6 and 16.1.3.5).
inline constexpr uint8_t kMaxSwitchPorts = 254;

// Where the fabric is joined to the kernel's network.
struct UplinkSpec {
  std::string name;
  bool gso = false;  // at first
  int line = 0;      // of the file; 0: it is in none
};

// One cable: both directions begin with the same values.
struct LinkSpec {
  std::string a, b;  // switches, uplinks, and ports as PortName::text() has them
  uint64_t rate_bps = 10'000'000'000;
  TimeNs delay_ns = kMicrosecond;
  double loss = 0;
  uint64_t buffer_bytes = 12 << 20;
  bool up = true;
};

// The direction of a cable that leads from one end to the other; names a directory.
std::string link_name(const std::string& from, const std::string& to);

struct Topology {
  std::vector<DeviceSpec> devices;
  std::vector<SwitchSpec> switches;
  std::vector<LinkSpec> links;
  std::vector<UplinkSpec> uplinks;  // each with one cable
};

// A start value: as if VALUE had been echoed into PATH. `line` is where the ini file says so.
struct KnobSetting {
  std::string path, value;
  int line = 0;
};

// The device that is the n-th, from 1, with what is its own where nothing is said: 10.77.0.n, an
// address, a PCI function, an interface's name.
inline constexpr size_t kMaxDevices = 200;
DeviceSpec nth_device(std::string name, size_t n);
// The same of its second port: 10.77.1.n.
PortSpec second_port(size_t n);

// A cable's key as the ini file has it: rate=, delay=, loss=, buffer=, state=. EINVAL for others
// and for what they cannot be.
Result<void> set_link_key(LinkSpec& link, std::string_view key, std::string_view value);
// An uplink's: gso=.
Result<void> set_uplink_key(UplinkSpec& uplink, std::string_view key, std::string_view value);
Result<void> set_mtu(std::string_view text, uint32_t& mtu);

// mb_0 and mb_1 on one switch sw_0, 10 Gb/s each.
Topology default_topology();
// The same with an uplink `uplink` at sw_0, and with this address, IPv4 or IPv6, at mb_0. EINVAL
// for what is no unicast address.
Result<Topology> uplink_topology(const std::string& address);

// EINVAL for what cannot be a port's: the ini file's ip= and ip6=.
Result<void> set_ipv4(const std::string& text, std::array<uint8_t, 4>& ip);
Result<void> set_ipv6(const std::string& text, std::optional<std::array<uint8_t, 16>>& ip);

}  // namespace rocefs
