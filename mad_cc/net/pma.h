// PerformanceAgent: the performance management agent of every node (IBTA volume 1, 16.1): reads and
// clears port counters.
//
// Core thread.
#pragma once

#include <optional>

#include "mad_cc/mad/mad.h"
#include "mad_cc/net/subnet.h"

namespace rocefs {

class PerformanceAgent {
 public:
  // The arguments outlive the agent.
  PerformanceAgent(const Subnet& subnet, SubnetState& state) : subnet_(subnet), state_(state) {}

  // Returns the answer to a MAD of class Perf that arrived at this port; nothing if `mad` is not a
  // request. Attributes: ClassPortInfo, PortCounters and PortCountersExtended (others:
  // kBadMethodAttribute). PortSelect is a port of the node except a switch's port 0, or 255 for the
  // sum of all (others: kBadValue). Set clears the counters that CounterSelect selects, whatever
  // values it carries, and answers as Get.
  std::optional<mad::Mad> answer(Subnet::End at, const mad::Mad& request) const;

 private:
  // Fills in PortCounters or PortCountersExtended. Returns the status.
  uint16_t access(size_t node, bool extended, bool set, uint8_t* data) const;

  const Subnet& subnet_;
  SubnetState& state_;
};

}  // namespace rocefs
