#include "rdma/network/fabric.h"

#include <algorithm>
#include <deque>
#include <set>

#include "rdma/fabric/switch_npcc.h"
#include "rdma/nic/device.h"
#include "rdma/uplink/uplink.h"

namespace rocefs {
namespace {

template <class T>
T* by_name(const std::vector<std::unique_ptr<T>>& all, std::string_view name) {
  auto it =
      std::find_if(all.begin(), all.end(), [&](const auto& one) { return one->name() == name; });
  return it == all.end() ? nullptr : it->get();
}

}  // namespace

Fabric::Fabric(const Topology& topology, uint64_t seed, Scheduler& scheduler,
               Outstanding& outstanding)
    : FabricResources(seed, scheduler, outstanding) {
  for (const DeviceSpec& spec : topology.devices) {
    devices_.push_back(std::make_unique<Device>(*this, spec));
  }
  for (const SwitchSpec& spec : topology.switches) {
    switches_.push_back(std::make_unique<Switch>(spec.name, seed, counters().unroutable));
  }
  for (const UplinkSpec& spec : topology.uplinks) {
    uplinks_.push_back(
        std::make_unique<Uplink>(spec.name, pool(), scheduler, counters().stale_payloads));
    uplinks_.back()->apply(Uplink::values_of(spec));
  }
  for (const LinkSpec& spec : topology.links) cable(spec);
  route();
  for (const auto& one : switches_) {
    npcc_.push_back(std::make_unique<SwitchNpcc>(
        scheduler, pool(), *one, [this](const NpccFlowKey& flow) { return sender_of(flow); }));
  }
}

Fabric::~Fabric() {
  pool().forget_listeners();
}

void Fabric::reset() {
  for (auto& link : links_) link->reset();
  for (auto& one : switches_) one->reset();
  for (auto& one : npcc_) one->npcc().reset();
  for (auto& one : uplinks_) one->reset();
  for (auto& device : devices_) {
    for (size_t number = 1; number <= device->port_count(); ++number) device->port(number).reset();
  }
  trace().reset();
}

Device* Fabric::device(std::string_view name) {
  return by_name(devices_, name);
}
Port* Fabric::port(std::string_view name) {
  std::optional<PortName> port = parse_port_name(name);
  Device* of = port ? device(port->device) : nullptr;
  return of && port->number <= of->port_count() ? &of->port(port->number) : nullptr;
}
Link* Fabric::link(std::string_view name) {
  return by_name(links_, name);
}
Switch* Fabric::find_switch(std::string_view name) {
  return by_name(switches_, name);
}
Uplink* Fabric::uplink(std::string_view name) {
  return by_name(uplinks_, name);
}

bool Fabric::reaches_outside(const Ip& own) const {
  return std::any_of(uplinks_.begin(), uplinks_.end(), [&](const auto& one) {
    const std::vector<Ip> bound = one->addresses();
    return std::find(bound.begin(), bound.end(), own) != bound.end();
  });
}

Device* Fabric::device_at(const Ip& address) const {
  for (const auto& device : devices_) {
    for (size_t number = 1; number <= device->port_count(); ++number) {
      if (device->port(number).gids().has(address)) return device.get();
    }
  }
  return nullptr;
}

// For a sender behind an uplink, the queue pair connected to it knows its number: from the CM's
// messages, or from its program.
std::optional<uint32_t> Fabric::sender_of(const NpccFlowKey& flow) const {
  if (Device* sender = device_at(flow.source)) {
    return sender->qps().sender_of(flow.source, flow.destination, flow.dest_qpn);
  }
  Device* receiver = device_at(flow.destination);
  const Qp* qp = receiver ? receiver->find_qp(flow.dest_qpn) : nullptr;
  if (!qp || qp->type() == QpType::kUd || !qp->receives_packets()) return std::nullopt;
  const QpAttributes& attributes = qp->attributes();
  bool theirs = attributes.path.remote == flow.source && attributes.path.local == flow.destination;
  return theirs ? std::optional(attributes.remote_qpn) : std::nullopt;
}

const std::string& Fabric::far_end(const Link& link) const {
  auto it = std::find_if(links_.begin(), links_.end(),
                         [&](const auto& one) { return one.get() == &link; });
  return ends_[static_cast<size_t>(it - links_.begin())].second;
}

Link& Fabric::add_link(const std::string& from, const std::string& to, const LinkSpec& spec) {
  LinkParameters parameters{spec.rate_bps, spec.delay_ns, spec.loss, spec.buffer_bytes, spec.up};
  auto id = static_cast<uint32_t>(links_.size());
  links_.push_back(std::make_unique<Link>(link_name(from, to, spec.parallel), id, parameters,
                                          seed(), scheduler(), trace()));
  ends_.emplace_back(from, to);
  return *links_.back();
}

void Fabric::cable(const LinkSpec& spec) {
  Link& forth = add_link(spec.a, spec.b, spec);
  Link& back = add_link(spec.b, spec.a, spec);
  forth.set_reverse(back);
  struct End {
    LinkSource* source;
    LinkSink* sink;
  };
  auto end = [&](const std::string& name, Link& out, Link& in) -> End {
    if (Switch* hub = find_switch(name)) {
      LinkSink& sink = hub->add_port(in, out);
      return {&hub->source(out), &sink};
    }
    if (Uplink* at = uplink(name)) {
      at->attach(out, in);
      return {at, at};
    }
    Port* at = port(name);
    at->attach(out, in);
    return {at, at};
  };
  End a = end(spec.a, forth, back);
  End b = end(spec.b, back, forth);
  forth.connect(*a.source, *b.sink);
  back.connect(*b.source, *a.sink);
}

void Fabric::route() {
  for (const auto& device : devices_) {
    for (unsigned number = 1; number <= device->port_count(); ++number) {
      route_to(PortName{device->name(), number}.text(), device->port(number).spec());
    }
  }
  route_outside();
  join_outside();
  find_trunks();
  route_groups();
}

// Breadth-first search from `ends` against the direction of travel: every switch, and every node
// cabled to one, gets the links by which the ends are nearest.
std::map<std::string, Fabric::Way> Fabric::ways_to(const std::vector<std::string>& ends) const {
  std::deque<std::string> frontier(ends.begin(), ends.end());
  std::map<std::string, Way> ways;
  for (const std::string& end : ends) ways[end] = {};
  auto is_switch = [&](const std::string& name) { return by_name(switches_, name) != nullptr; };
  while (!frontier.empty()) {
    std::string at = frontier.front();
    frontier.pop_front();
    unsigned distance = ways[at].distance + 1;
    for (size_t i = 0; i < links_.size(); ++i) {
      const auto& [from, to] = ends_[i];
      if (to != at) continue;
      auto [way, found] = ways.try_emplace(from, Way{distance, {}});
      if (found && is_switch(from)) frontier.push_back(from);
      if (way->second.distance == distance) way->second.links.push_back(links_[i].get());
    }
  }
  return ways;
}

void Fabric::route_to(const std::string& port, const PortSpec& spec) {
  for (const auto& [name, way] : ways_to({port})) {
    Switch* from = find_switch(name);
    Uplink* outside = uplink(name);
    if (from) from->set_route(spec.mac, way.links);
    for (const Ip& ip : gids_of(spec)) {
      if (from) from->set_route(ip, way.links);
      if (outside) outside->serve(ip, *this->port(port));
    }
  }
}

void Fabric::add_address(const Port& port, const Ip& address) {
  for (const auto& one : switches_) one->set_route_as(address, port.spec().mac);
}

// Routes packets for addresses outside the fabric to the nearest uplink.
void Fabric::route_outside() {
  std::vector<std::string> ends;
  for (const auto& one : uplinks_) ends.push_back(one->name());
  for (const auto& [name, way] : ways_to(ends)) {
    if (Switch* from = find_switch(name)) from->set_default_route(way.links);
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

// Lists the links to ports and uplinks, and the cables between switches, which a spanning tree may
// use.
void Fabric::find_trunks() {
  for (size_t i = 0; i < links_.size(); ++i) {
    const auto& [from, to] = ends_[i];
    if (port(to) || uplink(to)) to_ports_[from].push_back(links_[i].get());
    if (!find_switch(from) || !find_switch(to)) continue;
    trunks_[to].push_back(i);
    links_[i]->add_state_listener([this] { route_groups(); });
  }
}

// Adds to `parents` the switches that reach `root`, each with its link towards it. A cable works if
// both directions do.
void Fabric::grow_tree(const std::string& root, std::map<std::string, size_t>& parents) const {
  std::deque<std::string> frontier{root};
  while (!frontier.empty()) {
    std::string at = frontier.front();
    frontier.pop_front();
    auto trunks = trunks_.find(at);
    if (trunks == trunks_.end()) continue;
    for (size_t i : trunks->second) {
      const std::string& from = ends_[i].first;
      // A cable's two links are adjacent.
      bool works = links_[i]->up() && links_[i ^ 1]->up();
      if (works && from != root && parents.emplace(from, i).second) frontier.push_back(from);
    }
  }
}

// Routes groups to every port and uplink, along a spanning tree of switches, so that no copy comes
// twice. An uplink sends what comes from its own addresses.
void Fabric::route_groups() {
  std::map<std::string, std::vector<const Link*>> flood = to_ports_;
  std::set<std::string> connected;
  for (const auto& root : switches_) {
    if (!connected.insert(root->name()).second) continue;
    std::map<std::string, size_t> parents;
    grow_tree(root->name(), parents);
    for (const auto& [name, up] : parents) {
      connected.insert(name);
      flood[name].push_back(links_[up].get());
      flood[ends_[up].second].push_back(links_[up ^ 1].get());
    }
  }
  for (const auto& one : switches_) one->set_flood(flood[one->name()]);
}

}  // namespace rocefs
