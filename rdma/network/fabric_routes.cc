// The ways of a fabric: where its destinations are, the routes of its switches, and the tree of
// switches for groups.
#include <algorithm>
#include <numeric>

#include "rdma/network/fabric.h"
#include "rdma/nic/device.h"
#include "rdma/uplink/uplink.h"

namespace rocefs {

static_assert(kMaxSwitches <= RouteTable::kMaxSets);

void Fabric::route() {
  find_trunks();
  place_destinations();
  serve_outside();
  route_switches();
  join_outside();
  route_groups();
}

// Lists the links to ports and uplinks, and the cables between switches, which a spanning tree may
// use.
void Fabric::find_trunks() {
  to_ports_.resize(switches_.size());
  trunks_.resize(switches_.size());
  for (uint32_t i = 0; i < links_.size(); ++i) {
    const Wire& wire = wires_[i];
    if (wire.from_hub == kNoHub) continue;
    if (wire.to_hub == kNoHub) {
      to_ports_[wire.from_hub].push_back(links_[i]);
      continue;
    }
    trunks_[wire.to_hub].push_back({i, wire.from_hub, wire.port});
    links_[i]->add_state_listener([this, i, &part = part_of(wire.from)] {
      part.alone([this, i] {
        route_groups();
        reconvergence_->changed(i / 2);
      });
    });
  }
  std::vector<uint32_t> by_name(switches_.size());
  std::iota(by_name.begin(), by_name.end(), 0);
  std::sort(by_name.begin(), by_name.end(),
            [&](uint32_t a, uint32_t b) { return switches_[a]->name() < switches_[b]->name(); });
  name_ranks_.resize(switches_.size());
  for (uint32_t rank = 0; rank < by_name.size(); ++rank) name_ranks_[by_name[rank]] = rank;
}

void Fabric::place_destinations() {
  for (const auto& device : devices_) {
    for (unsigned number = 1; number <= device->port_count(); ++number) {
      Port& port = device->port(number);
      for (const Ip& ip : gids_of(port.spec())) by_address_.try_emplace(ip, device.get());
      if (!port.cabled()) continue;
      const Wire& wire = wires_[port.ingress().id()];
      if (wire.from_hub == kNoHub) continue;
      destinations().set(port.spec().mac, {static_cast<uint16_t>(wire.from_hub), wire.port});
      for (const Ip& ip : gids_of(port.spec())) {
        destinations().set(ip, {static_cast<uint16_t>(wire.from_hub), wire.port});
      }
    }
  }
}

void Fabric::add_address(const Port& port, const Ip& address) {
  by_address_.insert_or_assign(address, device(port.host().name()));
  destinations().copy(address, port.spec().mac);
}

// A cable's two links are adjacent.
bool Fabric::cable_works(uint32_t cable) const {
  return links_[2 * cable]->up() && links_[2 * cable + 1]->up();
}

// Searches once for each switch with a destination, and shares the result among its destinations.
// Without reconvergence links that are down count: their switches send around them
// (Switch::next_hop).
void Fabric::route_switches() {
  WaySearch search(trunks_);
  auto usable = [this](uint32_t link) { return reconvergence_->usable(link / 2); };
  for (const auto& one : switches_) one->forget_routes();
  for (uint32_t to = 0; to < switches_.size(); ++to) {
    if (to_ports_[to].empty()) continue;
    search.begin();
    search.start(to);
    search.run(usable);
    for (const auto& from : switches_) {
      if (from->number() != to) from->set_route(to, search.hops(from->number()));
    }
  }
  route_outside(search);
}

const std::vector<uint32_t>& Fabric::links_towards(uint32_t hub) {
  towards_.resize(switches_.size());
  std::vector<uint32_t>& first = towards_[hub];
  if (!first.empty()) return first;
  WaySearch search(trunks_);
  search.begin();
  search.start(hub);
  search.run([](uint32_t) { return true; });
  first.assign(switches_.size(), kNoLink);
  for (const std::vector<Trunk>& trunks : trunks_) {
    for (const Trunk& trunk : trunks) {
      std::span<const uint16_t> hops = search.hops(trunk.from);
      if (!hops.empty() && hops.front() == trunk.port) first[trunk.from] = trunk.link;
    }
  }
  return first;
}

std::vector<const Link*> Fabric::way(const Port& from, const Port& to) {
  if (!from.cabled() || !to.cabled()) return {};
  const Link& last_link = *links_[to.egress().id() ^ 1];  // a cable's two links are adjacent
  std::vector<const Link*> way{&from.egress()};
  if (way.front() == &last_link) return way;
  uint32_t at = wires_[from.egress().id()].to_hub, last = wires_[last_link.id()].from_hub;
  if (at == kNoHub || last == kNoHub) return {};
  const std::vector<uint32_t>& towards = links_towards(last);
  while (at != last) {
    const uint32_t link = towards[at];
    if (link == kNoLink) return {};
    way.push_back(links_[link]);
    at = wires_[link].to_hub;
  }
  way.push_back(&last_link);
  return way;
}

// Routes packets for addresses outside the fabric to the nearest uplink.
void Fabric::route_outside(WaySearch& search) {
  if (uplinks_.empty()) return;
  auto usable = [this](uint32_t link) { return reconvergence_->usable(link / 2); };
  search.begin();
  for (const auto& one : uplinks_) {
    for (const Wire& wire : wires_) {
      if (wire.from_hub != kNoHub && wire.to == one->name()) {
        search.start(wire.from_hub, wire.port);
      }
    }
  }
  search.run(usable);
  for (const auto& from : switches_) from->set_default_route(search.hops(from->number()));
}

// Tells every uplink the addresses of the ports that it reaches, over switches or by its cable.
void Fabric::serve_outside() {
  WaySearch search(trunks_);
  for (size_t i = 0; i < wires_.size(); ++i) {
    const Wire& wire = wires_[i];
    Uplink* outside = uplinks_.empty() ? nullptr : uplink(wire.from);
    if (!outside) continue;
    search.begin();
    if (wire.to_hub != kNoHub) search.start(wire.to_hub);
    search.run([](uint32_t) { return true; });
    for (const auto& device : devices_) {
      for (unsigned number = 1; number <= device->port_count(); ++number) {
        Port& port = device->port(number);
        if (!port.cabled()) continue;
        const Wire& at = wires_[port.ingress().id()];
        bool reached =
            at.from_hub == kNoHub ? &port.ingress() == links_[i] : search.reached(at.from_hub);
        if (!reached) continue;
        for (const Ip& ip : gids_of(port.spec())) outside->serve(ip, port);
      }
    }
  }
}

// Groups of a device are joined on the machine's networks too.
void Fabric::join_outside() {
  for (const auto& one : uplinks_) {
    one->set_inside([this](const Ip& address) { return device_at(address) != nullptr; });
  }
  for (const auto& one : devices_) {
    one->groups().on_change([this, device = one.get()](const Ip& group, bool exists) {
      for (const auto& uplink : uplinks_) {
        for (size_t number = 1; number <= device->port_count(); ++number) {
          uplink->set_member(device->port(number), group, exists);
        }
      }
    });
  }
}

// Adds to `members` the switches that reach `root`, and to `parents` their links towards it. A
// cable works if both directions do.
void Fabric::grow_tree(uint32_t root, std::vector<const Trunk*>& parents,
                       std::vector<uint32_t>& members) const {
  members = {root};
  for (size_t next = 0; next < members.size(); ++next) {
    for (const Trunk& trunk : trunks_[members[next]]) {
      if (!cable_works(trunk.link / 2) || trunk.from == root || parents[trunk.from]) continue;
      parents[trunk.from] = &trunk;
      members.push_back(trunk.from);
    }
  }
  members.erase(members.begin());
}

// Routes groups to every port and uplink, along a spanning tree of switches, so that no copy comes
// twice. An uplink sends what comes from its own addresses. The order of copies at a switch is that
// of the names of its neighbours in the tree.
void Fabric::route_groups() {
  std::vector<std::vector<const Link*>> flood = to_ports_;
  std::vector<const Trunk*> parents(switches_.size());
  std::vector<bool> connected(switches_.size());
  std::vector<uint32_t> members;
  for (uint32_t root = 0; root < switches_.size(); ++root) {
    if (connected[root]) continue;
    connected[root] = true;
    grow_tree(root, parents, members);
    std::sort(members.begin(), members.end(),
              [this](uint32_t a, uint32_t b) { return name_ranks_[a] < name_ranks_[b]; });
    for (uint32_t member : members) {
      connected[member] = true;
      uint32_t up = parents[member]->link;
      flood[member].push_back(links_[up]);
      flood[wires_[up].to_hub].push_back(links_[up ^ 1]);
    }
  }
  for (size_t i = 0; i < switches_.size(); ++i) switches_[i]->set_flood(flood[i]);
}

}  // namespace rocefs
