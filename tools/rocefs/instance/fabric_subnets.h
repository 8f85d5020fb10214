// FabricSubnets: the subnets that a subnet manager would find in a fabric, with LIDs and GUIDs.
//
//   node GUID     channel adapter: EUI-64 of the MAC of port 1 (node_guid). Switch: 02004c7377 and
//                 its number among the topology's switches, from 1. It differs from every EUI-64 of
//                 a MAC, which has fffe in octets 4 and 5
//   port GUID     channel adapter: the low half of the port's GID 0. Switch: its node GUID
//   LID           from 1 in each subnet: the manager's, then those of the channel adapters' ports,
//                 then those of the switches, each in the topology's order
//   cables        cables to uplinks do not count: MADs do not leave the machine
//   port numbers  switch: as in fabric/<switch>/ports/<n>
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "tools/rocefs/instance/fabric_subnet.h"

namespace rocefs {

class FabricSubnets {
 public:
  // Before the engine starts. The fabric outlives it.
  explicit FabricSubnets(Fabric& fabric);

  const std::vector<std::unique_ptr<FabricSubnet>>& all() const { return all_; }
  // Subnet of a port of the fabric's devices. Any thread.
  const Subnet& subnet_of(const Port& port) const {
    return all_[places_.at(&port).subnet]->subnet();
  }
  Subnet::End end_of(const Port& port) const { return places_.at(&port).end; }
  // Index in all() of the port's subnet.
  size_t index_of(const Port& port) const { return places_.at(&port).subnet; }

 private:
  struct Place {
    size_t subnet;
    Subnet::End end;
  };
  class Builder;
  std::vector<std::unique_ptr<FabricSubnet>> all_;
  std::map<const Port*, Place> places_;
};

}  // namespace rocefs
