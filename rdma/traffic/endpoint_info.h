// Messages between the two ends of a flow: before it begins, and when it has ended.
#pragma once

#include <cstdint>
#include <vector>

namespace rocefs {

// A queue pair as the other end needs it. 24 bits each.
struct FlowQp {
  uint32_t qpn = 0;
  uint32_t psn = 0;  // of the first packet that it sends
  bool operator==(const FlowQp&) const = default;
};

// An end as the other one needs it.
struct EndpointInfo {
  uint32_t mtu = 0;
  uint64_t address = 0;  // of the far end's memory, with its rkey
  uint32_t key = 0;
  uint64_t bytes = 0;  // of a file that the far end lets be read
  std::vector<FlowQp> qps;
};

// The sums of the far end.
struct FlowReport {
  uint64_t received = 0;  // messages
  uint64_t bytes = 0;
  uint64_t mismatched = 0;
};

}  // namespace rocefs
