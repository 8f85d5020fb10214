// Who answers MADs at the nodes of a subnet, and how MADs get there. Core thread.
#pragma once

#include "mad_cc/mad.h"
#include "mad_cc/subnet.h"

namespace rocefs {

// The subnet manager's agent of a node (chapter 14): answers SMPs. What a class cannot do gets the
// status that 13.4.7 gives it.
class SubnetAgent {
 public:
  SubnetAgent(const Subnet& subnet, const SubnetState& state) : subnet_(subnet), state_(state) {}
  // The answer to a Get or Set that arrived at this node by this port; directed-route fields of the
  // header are the network's affair. Nothing for what is no request.
  std::optional<mad::Mad> answer(Subnet::End at, const mad::Mad& request) const;

 private:
  const Subnet& subnet_;
  const SubnetState& state_;
};

// The performance manager's agent of a node (chapter 16.1).
class PerformanceAgent {
 public:
  PerformanceAgent(const Subnet& subnet, SubnetState& state) : subnet_(subnet), state_(state) {}
  std::optional<mad::Mad> answer(Subnet::End at, const mad::Mad& request) const;

 private:
  const Subnet& subnet_;
  SubnetState& state_;
};

}  // namespace rocefs
