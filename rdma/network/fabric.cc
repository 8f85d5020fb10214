#include "rdma/network/fabric.h"

#include <algorithm>
#include <bit>

#include "rdma/fabric/switch_npcc.h"
#include "rdma/nic/device.h"
#include "rdma/uplink/uplink.h"

namespace rocefs {
Fabric::Fabric(const Topology& topology, uint64_t seed, Scheduler& scheduler,
               Outstanding& outstanding)
    : FabricResources(seed, scheduler, outstanding) {
  build(topology);
}

Fabric::Fabric(const Topology& topology, uint64_t seed, Engine& engine, const CorePlan& plan)
    : FabricResources(seed, engine.scheduler(), engine.outstanding()), plan_(plan) {
  if (engine.regions()) {
    add_regions(*engine.regions());
  } else if (plan.cores() > 1) {
    add_cores(engine);
  }
  build(topology);
}

void Fabric::add_cores(Engine& engine) {
  for (size_t i = 0; i < plan_.cores(); ++i) {
    parts_.push_back(std::make_unique<FabricResources>(
        *this, engine.core(i), [&engine](Task task) { engine.alone(std::move(task)); }));
    core_exchanges_.push_back(std::make_unique<CoreExchange>(engine.core(i), parts_.back()->pool(),
                                                             counters().stale_payloads));
  }
}

void Fabric::add_regions(Regions& regions) {
  regions_ = &regions;
  for (size_t i = 0; i < regions.count(); ++i) {
    parts_.push_back(std::make_unique<FabricResources>(
        *this, regions[i], [&regions, i](Task task) { regions.alone(i, std::move(task)); }));
    exchanges_.push_back(std::make_unique<RegionExchange>(regions[i], parts_.back()->pool()));
  }
  regions.set_lookahead([this] { return lookahead(); });
}

TimeNs Fabric::lookahead() const {
  TimeNs least = kNever;
  for (const Link* link : links_) {
    if (link->crosses()) least = std::min(least, link->parameters().delay_ns);
  }
  return least;
}

void Fabric::build(const Topology& topology) {
  for (const DeviceSpec& spec : topology.devices) {
    devices_.push_back(std::make_unique<Device>(part_of(spec.name), spec));
    device_names_.add(*devices_.back());
  }
  std::unordered_map<std::string, size_t> cables;
  for (const LinkSpec& spec : topology.links) {
    ++cables[spec.a];
    ++cables[spec.b];
  }
  for (const SwitchSpec& spec : topology.switches) {
    auto number = static_cast<uint32_t>(switches_.size());
    switches_.push_back(std::make_unique<Switch>(spec.name, number, destinations(), seed(),
                                                 counters().unroutable, cables[spec.name]));
    switches_.back()->apply(SwitchSettings::initial_values(spec.buffer_bytes));
    switch_names_.add(*switches_.back());
  }
  for (const UplinkSpec& spec : topology.uplinks) {
    FabricResources& part = part_of(spec.name);
    uplinks_.push_back(std::make_unique<Uplink>(spec.name, part.pool(), part.scheduler(),
                                                counters().stale_payloads));
    uplinks_.back()->apply(Uplink::values_of(spec));
    uplink_names_.add(*uplinks_.back());
  }
  for (const LinkSpec& spec : topology.links) cable(spec);
  reconvergence_ = std::make_unique<Reconvergence>(
      scheduler(), topology.links.size(), [this](uint32_t cable) { return cable_works(cable); },
      [this] { route_switches(); });
  route();
  if (topology.reconverge) {
    reconvergence_->apply(
        std::vector<KnobValue>{uint64_t{1}, static_cast<uint64_t>(*topology.reconverge)});
  }
  for (const auto& one : switches_) {
    FabricResources& part = part_of(one->name());
    npcc_.push_back(std::make_unique<SwitchNpcc>(
        part.scheduler(), part.pool(), *one,
        SwitchNpcc::SenderLookup{[this](const NpccFlowKey& flow, std::optional<uint32_t> last) {
                                   return sender_of(flow, last);
                                 },
                                 [this, &part](const NpccFlowKey& flow) {
                                   const Device* device = sender_known_by(flow);
                                   return !device || &device->fabric() == &part;
                                 },
                                 [&part](Task task) { part.alone(std::move(task)); }}));
  }
}

Fabric::~Fabric() {
  pool().forget_listeners();
  for (const auto& part : parts_) part->pool().forget_listeners();
}

uint64_t Fabric::trace_hash() const {
  uint64_t hash = trace().value();
  for (const auto& part : parts_) hash = std::rotl(hash, 7) ^ part->trace().value();
  return hash;
}

void Fabric::capture_by(CaptureSink* sink) {
  set_capture(sink);
  for (const auto& part : parts_) part->set_capture(sink);
}

void Fabric::reset() {
  for (auto& exchange : exchanges_) exchange->reset();
  for (auto& exchange : core_exchanges_) exchange->reset();
  for (auto& link : links_) link->reset();
  for (auto& one : switches_) {
    one->note_queues(part_of(one->name()).scheduler().now());
    one->reset();
  }
  for (auto& one : npcc_) one->npcc().reset();
  for (auto& one : uplinks_) one->reset();
  for (auto& device : devices_) {
    for (size_t number = 1; number <= device->port_count(); ++number) device->port(number).reset();
  }
  reconvergence_->reset();
  trace().reset();
  for (const auto& part : parts_) part->trace().reset();
}

void Fabric::clear_counters() {
  for (Link* link : links_) link->clear_counters();
  for (auto& one : switches_) one->clear_counters();
  for (auto& one : npcc_) zero_counters(kNpccCounters, one->npcc().counters());
  for (auto& one : uplinks_) zero_counters(kUplinkCounters, one->counters());
  for (auto& device : devices_) {
    for (size_t number = 1; number <= device->port_count(); ++number) {
      Port& port = device->port(number);
      zero_counters(kPortCounters, port.counters());
      zero_counters(kInterfaceCounters, port.interface_counters());
    }
  }
  zero_counters(kReconvergenceCounters, reconvergence_->counters());
  zero_counters(kFabricCounters, counters());
}

Device* Fabric::device(std::string_view name) {
  return device_names_.find(name);
}
Port* Fabric::port(std::string_view name) {
  std::optional<PortName> port = parse_port_name(name);
  Device* of = port ? device(port->device) : nullptr;
  return of && port->number <= of->port_count() ? &of->port(port->number) : nullptr;
}
Link* Fabric::link(std::string_view name) {
  return link_names_.find(name);
}
Switch* Fabric::find_switch(std::string_view name) {
  return switch_names_.find(name);
}
Uplink* Fabric::uplink(std::string_view name) {
  return uplink_names_.find(name);
}

bool Fabric::reaches_outside(const Ip& own) const {
  return std::any_of(uplinks_.begin(), uplinks_.end(), [&](const auto& one) {
    const std::vector<Ip> bound = one->addresses();
    return std::find(bound.begin(), bound.end(), own) != bound.end();
  });
}

// The index may name a device that has lost the address, while another one has it, too.
Device* Fabric::device_at(const Ip& address) const {
  auto has = [&](const Device& device) {
    for (size_t number = 1; number <= device.port_count(); ++number) {
      if (device.port(number).gids().has(address)) return true;
    }
    return false;
  };
  auto known = by_address_.find(address);
  if (known == by_address_.end()) return nullptr;
  if (has(*known->second)) return known->second;
  for (const auto& device : devices_) {
    if (has(*device)) return device.get();
  }
  return nullptr;
}

// The sender, or for one behind an uplink the receiver: the queue pair connected to it knows its
// number from the CM's messages, or from its program.
Device* Fabric::sender_known_by(const NpccFlowKey& flow) const {
  Device* sender = device_at(flow.source);
  return sender ? sender : device_at(flow.destination);
}

std::optional<uint32_t> Fabric::sender_of(const NpccFlowKey& flow,
                                          std::optional<uint32_t> last) const {
  if (Device* sender = device_at(flow.source)) {
    return sender->qps().sender_of(flow.source, flow.destination, flow.dest_qpn, last);
  }
  Device* receiver = device_at(flow.destination);
  const Qp* qp = receiver ? receiver->find_qp(flow.dest_qpn) : nullptr;
  if (!qp || qp->type() == QpType::kUd || !qp->receives_packets()) return std::nullopt;
  const QpAttributes& attributes = qp->attributes();
  bool theirs = attributes.path.remote == flow.source && attributes.path.local == flow.destination;
  return theirs ? std::optional(attributes.remote_qpn) : std::nullopt;
}

const std::string& Fabric::far_end(const Link& link) const {
  return wires_[link.id()].to;
}

const LinkSides& Fabric::sides_of(const std::string& from, const std::string& to) {
  const size_t near = plan_.core_of(from), far = plan_.core_of(to);
  auto known = sides_.find({near, far});
  if (known != sides_.end()) return known->second;
  FabricResources &here = part_of(from), &there = part_of(to);
  Crossings* crossings = nullptr;
  if (near != far && regions_) crossings = &exchanges_[near]->way_to(*exchanges_[far]);
  if (near != far && !regions_) crossings = &core_exchanges_[near]->way_to(*core_exchanges_[far]);
  LinkSides sides{here.scheduler(), here.trace(), there.scheduler(), there.trace(), crossings};
  return sides_.emplace(std::pair(near, far), sides).first->second;
}

// Adds a link of the newest cable.
Link& Fabric::add_link(const std::string& from, const std::string& to, unsigned parallel) {
  auto id = static_cast<uint32_t>(links_.size());
  const LinkSides& sides = sides_of(from, to);
  auto make = [&](auto& memory) {
    return &memory.make(link_name(from, to, parallel), id, initial_.back(), seed(), sides);
  };
  Switch* hub = find_switch(from);
  links_.push_back(hub ? make(hub->outs()) : make(link_memory_));
  link_names_.add(*links_.back());
  if (regions_ && sides.crossings) {
    links_.back()->add_parameter_listener([this] { regions_->lookahead_changed(); });
  }
  wires_.push_back({from, to});
  return *links_.back();
}

void Fabric::cable(const LinkSpec& spec) {
  initial_.push_back({spec.rate_bps, spec.delay_ns, spec.loss, spec.buffer_bytes,
                      spec.ingress_buffer_bytes, spec.up});
  Link& forth = add_link(spec.a, spec.b, spec.parallel);
  Link& back = add_link(spec.b, spec.a, spec.parallel);
  forth.set_reverse(back);
  struct End {
    LinkSource* source;
    LinkSink* sink;
  };
  auto end = [&](const std::string& name, const std::string& far, Link& out, Link& in) -> End {
    if (Switch* hub = find_switch(name)) {
      Wire& away = wires_[out.id()];
      away.from_hub = wires_[in.id()].to_hub = hub->number();
      away.port = static_cast<uint16_t>(hub->port_count());
      LinkSink& sink = hub->add_port(in, out);
      return {&hub->source(out), &sink};
    }
    if (Uplink* at = uplink(name)) {
      at->attach(out, in);
      return {at, at};
    }
    Port* at = port(name);
    at->attach(out, in, find_switch(far) != nullptr);
    return {at, at};
  };
  End a = end(spec.a, spec.b, forth, back);
  End b = end(spec.b, spec.a, back, forth);
  forth.connect(*a.source, *b.sink);
  back.connect(*b.source, *a.sink);
}

}  // namespace rocefs
