// SubnetAgent: the subnet manager's agent of every node (IBTA volume 1, chapter 14): tells what a
// manager would ask. It is asked only: what a manager sets here the emulator has set, and any Set
// is refused (kBadMethodAttribute).
//
// Core thread.
#pragma once

#include <optional>

#include "mad_cc/mad/mad.h"
#include "mad_cc/net/subnet.h"

namespace rocefs {

class SubnetAgent {
 public:
  // Both outlive it.
  SubnetAgent(const Subnet& subnet, const SubnetState& state) : subnet_(subnet), state_(state) {}

  // The answer to an SMP that arrived at this node by this port; directed-route fields of the
  // header are the network's affair. Nothing for what is no request. The status is by 13.4.7:
  // kBadMethodAttribute for what the node has not, kBadValue for a port, block or LID that is none.
  std::optional<mad::Mad> answer(Subnet::End at, const mad::Mad& request) const;

 private:
  uint16_t get(Subnet::End at, uint16_t attribute, uint32_t modifier, uint8_t* data) const;
  uint16_t get_port_info(Subnet::End at, uint32_t modifier, uint8_t* data) const;
  uint16_t get_pkeys(Subnet::End at, uint32_t modifier, uint8_t* data) const;
  uint16_t get_sl_to_vl(Subnet::End at, uint32_t modifier, uint8_t* data) const;
  uint16_t get_linear_table(size_t node, uint32_t block, uint8_t* data) const;

  const Subnet& subnet_;
  const SubnetState& state_;
};

}  // namespace rocefs
