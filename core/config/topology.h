// Topology: devices, switches and cables. Plain data, read once at start.
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
  std::optional<std::array<uint8_t, 16>> ipv6;  // global address
  uint32_t mtu = 4096;                          // RDMA path MTU: 256, 512, 1024, 2048 or 4096
  int ipv4_line = 0;                            // line of the ini file that gives the address
};

// Both ports of a device belong to one PCI function.
struct DeviceSpec {
  std::string name;
  std::string pci;              // domain:bus:device.function, as in 0000:2b:00.0
  std::vector<PortSpec> ports;  // one or two
  std::string host = {};        // machine around it; empty: one of the device's name
};

// Name of a port: DEVICE is port 1, DEVICE/2 the second port. DEVICE/1 is accepted.
struct PortName {
  std::string device;
  unsigned number = 1;
  std::string text() const { return number == 1 ? device : device + "/" + std::to_string(number); }
};
// Empty if `text` is malformed; the port need not exist.
std::optional<PortName> parse_port_name(std::string_view text);

struct SwitchSpec {
  std::string name;
  uint64_t buffer_bytes = 12 << 20;  // its memory
};
// Most octets of a buffer; a link's default, which leaves the limit to the switch.
inline constexpr uint64_t kMaxBuffer = uint64_t{1} << 40;
// Most cables of a switch. A management datagram has an octet for a port number, and 255 means all
// ports (IBTA volume 1, 14.2.5.6 and 16.1.3.5).
inline constexpr uint8_t kMaxSwitchPorts = 254;

// Connection of the fabric to the kernel's network.
struct UplinkSpec {
  std::string name;
  bool gso = false;  // initial value
  int line = 0;      // line of the file; 0: none
};

// A cable: both directions have the same initial values.
struct LinkSpec {
  std::string a, b;  // switches, uplinks, and ports as PortName::text() has them
  uint64_t rate_bps = 10'000'000'000;
  TimeNs delay_ns = kMicrosecond;
  double loss = 0;
  uint64_t buffer_bytes = kMaxBuffer;          // of the switch that transmits on a direction
  uint64_t ingress_buffer_bytes = kMaxBuffer;  // of the switch that it leads into
  bool up = true;
  unsigned parallel = 1;  // number among the cables between the same two switches
};

// Name of the direction of a cable from one end to the other, and of its directory: FROM-TO, and
// FROM-TO.N for the N-th of parallel cables, from the second.
std::string link_name(const std::string& from, const std::string& to, unsigned parallel = 1);

struct Topology {
  std::vector<DeviceSpec> devices;
  std::vector<SwitchSpec> switches;
  std::vector<LinkSpec> links;
  std::vector<UplinkSpec> uplinks;  // each with one cable
  // Time after which routes follow a change of a cable between switches; empty: they never do.
  std::optional<TimeNs> reconverge = {};
};

// A start value: as if VALUE had been echoed into PATH. `line`: its line of the ini file.
struct KnobSetting {
  std::string path, value;
  int line = 0;
};

// Devices are numbered in blocks of 200, b from 0 and i from 1: the addresses 10.77.2b.i and
// 02:00:4c:6d:(62+2b):i, and those of the second ports after them, are of one octet each, so there
// are 64 blocks.
inline constexpr size_t kDeviceBlock = 200;
inline constexpr size_t kMaxDevices = 64 * kDeviceBlock;
// Switches are numbered, and each has a route of two octets to every other one.
inline constexpr size_t kMaxSwitches = 16'384;
// The n-th device, from 1, with its default addresses, PCI function (domain b, a bus for each i)
// and interface name: 10.77.0.n, 0000:BUS:00.0 and enpBUSs0 in the first block.
DeviceSpec nth_device(std::string name, size_t n);
// The default second port of the n-th device: 10.77.1.n in the first block.
PortSpec second_port(size_t n);

// Sets a switch's key of the ini file: buffer=. EINVAL for other keys and invalid values, here and
// below.
Result<void> set_switch_key(SwitchSpec& one, std::string_view key, std::string_view value);
// Sets a cable's key: rate=, delay=, loss=, buffer=, ingress_buffer=, state=.
Result<void> set_link_key(LinkSpec& link, std::string_view key, std::string_view value);
// Sets an uplink's key: gso=.
Result<void> set_uplink_key(UplinkSpec& uplink, std::string_view key, std::string_view value);
Result<void> set_mtu(std::string_view text, uint32_t& mtu);

// mb_0 and mb_1 on one switch sw_0, 10 Gb/s each.
Topology default_topology();
// The default topology with an uplink `uplink` at sw_0, and with this address, IPv4 or IPv6, at
// mb_0. EINVAL unless it is a unicast address.
Result<Topology> uplink_topology(const std::string& address);

// The ini file's mac= and pci=. EINVAL for an address that a port, or a function, cannot have.
Result<void> set_mac(std::string_view text, std::array<uint8_t, 6>& mac);
Result<void> set_pci(std::string_view text, std::string& pci);
// The ini file's ip= and ip6=. EINVAL for an address that a port cannot have.
Result<void> set_ipv4(const std::string& text, std::array<uint8_t, 4>& ip);
Result<void> set_ipv6(const std::string& text, std::optional<std::array<uint8_t, 16>>& ip);

}  // namespace rocefs
