// SubnetAgent: the subnet management agent of every node (IBTA volume 1, chapter 14). Read-only:
// the emulator has configured the subnet, and any Set is refused (kBadMethodAttribute).
//
// Core thread.
#pragma once

#include <optional>

#include "mad_cc/mad/mad.h"
#include "mad_cc/net/subnet.h"

namespace rocefs {

class SubnetAgent {
 public:
  // The arguments outlive the agent.
  SubnetAgent(const Subnet& subnet, const SubnetState& state) : subnet_(subnet), state_(state) {}

  // Returns the answer to an SMP that arrived at this port; nothing if `mad` is not a request. The
  // network handles the directed-route fields. Status by 13.4.7: kBadMethodAttribute for an
  // attribute that the node does not have, kBadValue for a port, block or LID that does not exist.
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
