// Topology: which devices, switches and cables there are. Plain data, read once at start.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/time.h"

namespace rocefs {

struct DeviceSpec {
  std::string name;
  std::string pci;     // domain:bus:device.function, as in 0000:2b:00.0
  std::string netdev;  // the interface's name
  std::array<uint8_t, 6> mac{};
  std::array<uint8_t, 4> ipv4{};
  std::optional<std::array<uint8_t, 16>> ipv6;  // a global one
  uint32_t mtu = 4096;                          // RDMA path MTU: 256, 512, 1024, 2048 or 4096
};

struct SwitchSpec {
  std::string name;
};

// One cable: both directions begin with the same values.
struct LinkSpec {
  std::string a, b;
  uint64_t rate_bps = 10'000'000'000;
  TimeNs delay_ns = kMicrosecond;
  double loss = 0;
  uint64_t buffer_bytes = 2 << 20;
  bool up = true;
};

struct Topology {
  std::vector<DeviceSpec> devices;
  std::vector<SwitchSpec> switches;
  std::vector<LinkSpec> links;
};

// A start value: as if VALUE had been echoed into PATH. `line` is where the ini file says so.
struct KnobSetting {
  std::string path, value;
  int line = 0;
};

// mb_0 and mb_1 on one switch sw_0, 10 Gb/s each.
Topology default_topology();

}  // namespace rocefs
