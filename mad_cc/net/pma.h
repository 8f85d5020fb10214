// PerformanceAgent: the performance manager's agent of every node (IBTA volume 1, 16.1): tells its
// ports' counters and clears them.
//
// Core thread.
#pragma once

#include <optional>

#include "mad_cc/mad/mad.h"
#include "mad_cc/net/subnet.h"

namespace rocefs {

class PerformanceAgent {
 public:
  // Both outlive it.
  PerformanceAgent(const Subnet& subnet, SubnetState& state) : subnet_(subnet), state_(state) {}

  // The answer to a MAD of class Perf that arrived at this node by this port. Nothing for what is
  // no request. It has ClassPortInfo, PortCounters and PortCountersExtended
  // (kBadMethodAttribute for others); PortSelect is a port of the node, but not a switch's port 0,
  // or 255 for the sum of all (kBadValue for others). Set clears the counters that CounterSelect
  // selects, whatever values are given, and answers as Get does then.
  std::optional<mad::Mad> answer(Subnet::End at, const mad::Mad& request) const;

 private:
  // PortCounters, or PortCountersExtended. The status.
  uint16_t access(size_t node, bool extended, bool set, uint8_t* data) const;

  const Subnet& subnet_;
  SubnetState& state_;
};

}  // namespace rocefs
