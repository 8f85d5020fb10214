// SubnetAgent: the subnet management agent of every node (IBTA volume 1, chapter 14).
//
// A Set of PortInfo, SwitchInfo, SLtoVLMappingTable and the forwarding tables is kept in the
// subnet's settings (SubnetSettings) and shown from then on; MADs follow written forwarding tables,
// packets do not. PortPhysicalState takes the cable down and up; MasterSMLID is the port's sm_lid.
// LIDs, M_Keys, partitions and GUIDs are the emulator's: a Set that would change one is refused
// (kBadValue), as are transitions of a port's state that do not exist. Other attributes cannot be
// set (kBadMethodAttribute).
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
  SubnetAgent(const Subnet& subnet, SubnetState& state) : subnet_(subnet), state_(state) {}

  // Returns the answer to an SMP that arrived at this port; nothing if `mad` is not a request. The
  // network handles the directed-route fields. Status by 13.4.7: kBadMethodAttribute for an
  // attribute that the node does not have, kBadValue for a port, block or LID that does not exist.
  std::optional<mad::Mad> answer(Subnet::End at, const mad::Mad& request) const;

  // Returns the output port of a switch for a LID by the forwarding table that a manager has
  // written (255: none); nothing if none has written that block.
  std::optional<uint8_t> written_forward(size_t switch_node, uint16_t lid) const;

 private:
  uint16_t get(Subnet::End at, uint16_t attribute, uint32_t modifier, uint8_t* data) const;
  uint16_t get_port_info(Subnet::End at, uint32_t modifier, uint8_t* data) const;
  uint16_t get_pkeys(Subnet::End at, uint32_t modifier, uint8_t* data) const;
  uint16_t get_sl_to_vl(Subnet::End at, uint32_t modifier, uint8_t* data) const;
  uint16_t get_linear_table(size_t node, uint32_t block, uint8_t* data) const;

  uint16_t get_multicast_table(size_t node, uint32_t modifier, uint8_t* data) const;

  using Octets = SubnetSettings::Octets;
  uint16_t set(Subnet::End at, uint16_t attribute, uint32_t modifier, const Octets& data) const;
  uint16_t set_port_info(Subnet::End at, uint32_t modifier, const Octets& data) const;
  uint16_t set_switch_info(size_t node, const Octets& data) const;
  // Whether a port may have these values; `now`: those that it has.
  bool may_have(Subnet::End at, const Octets& wanted, const Octets& now) const;

  const Subnet& subnet_;
  SubnetState& state_;
};

}  // namespace rocefs
