#include "tools/rocefs/sim/fabric_totals.h"

#include <algorithm>
#include <unordered_map>

#include "rdma/nic/device.h"

namespace rocefs {
namespace {

using LinkPlaces = std::unordered_map<const Link*, size_t>;

LinkTotals totals_of(const Link& link, const LinkCapacities& capacities, TimeNs now) {
  LinkTotals totals;
  const LinkCounters& counters = link.counters();
  totals.name = link.name();
  totals.rate_bps = link.parameters().rate_bps;
  totals.capacity_bits = capacities.bits(link, now);
  totals.packets = counters.packets.get();
  totals.bytes = counters.bytes.get();
  const LinkLosses& losses = link.losses();
  totals.lost = losses.lost.get();
  totals.lost_bytes = losses.lost_bytes.get();
  totals.overflowed = losses.overflowed.get();
  for (size_t priority = 0; priority < kPriorities; ++priority) {
    const PauseState& state = link.pause_state(priority);
    totals.pause_received += state.counters.pause_received.get();
    totals.paused_ns += state.paused_ns(now);
  }
  return totals;
}

void add_switch_port(FabricTotals& totals, const LinkPlaces& places, const Switch& hub,
                     size_t index) {
  const SwitchPort& port = hub.port(index);
  LinkTotals::Egress egress;
  uint64_t pauses = 0;
  for (size_t priority = 0; priority < kPriorities; ++priority) {
    egress.marked += port.rest->egress_counters[priority].marked.get();
    egress.dropped += port.rest->egress_counters[priority].dropped.get();
    egress.queue_peak = std::max(egress.queue_peak, hub.queue(index, priority).peak.get());
    pauses += port.rest->ingress_counters[priority].pause_sent.get();
  }
  totals.links[places.at(port.egress.link)].egress = egress;
  const uint64_t stored = port.ingress.peak.get();
  totals.links[places.at(port.ingress.link)].ingress = {pauses, stored};
  totals.ingress_peak = std::max(totals.ingress_peak, stored);
  totals.ce_marked += egress.marked;
  totals.queue_peak = std::max(totals.queue_peak, egress.queue_peak);
}

// Time that NIC ports waited for PFC, beside the link out of each.
void add_waits(FabricTotals& totals, const Fabric& fabric, const Topology& topology, TimeNs now) {
  std::unordered_map<std::string_view, size_t> places;
  for (size_t i = 0; i < totals.links.size(); ++i) places[totals.links[i].name] = i;
  std::unordered_map<std::string, const Port*> ports;
  for (const auto& device : fabric.devices()) {
    for (unsigned number = 1; number <= device->spec().ports.size(); ++number) {
      ports[PortName{device->name(), number}.text()] = &device->port(number);
    }
  }
  for (const LinkSpec& cable : topology.links) {
    for (const auto& [near, far] : {std::pair(cable.a, cable.b), std::pair(cable.b, cable.a)}) {
      auto port = ports.find(near);
      if (port == ports.end()) continue;
      uint64_t wait = port->second->xmit_wait_ns(now);
      totals.links[places.at(link_name(near, far))].xmit_wait_ns = wait;
      totals.xmit_wait_ns += wait;
    }
  }
}

void add_lacked_room(FabricTotals& totals, const Fabric& fabric) {
  for (const CounterRow<RoomCounters>& row : kRoomCounters) {
    uint64_t sum = 0;
    for (const auto& one : fabric.switches()) sum += (one->drops().*row.member).get();
    totals.lacked_room.emplace_back(row.path.substr(row.path.rfind('/') + 1), sum);
  }
}

void add_drops(FabricTotals& totals, const Fabric& fabric) {
  uint64_t lost = 0, overflowed = 0, discards = 0, errors = 0, icrc = 0, unknown = 0, pkey = 0;
  for (const LinkTotals& link : totals.links) {
    lost += link.lost;
    overflowed += link.egress ? link.egress->dropped : 0;
  }
  for (const auto& device : fabric.devices()) {
    for (unsigned number = 1; number <= device->spec().ports.size(); ++number) {
      const PortCounters& counters = device->port(number).counters();
      discards += counters.port_xmit_discards.get();
      errors += counters.port_rcv_errors.get();
      icrc += counters.rx_icrc_encapsulated.get();
      unknown += counters.rx_unknown_qp.get();
      pkey += counters.rx_wrong_pkey.get();
    }
  }
  const FabricCounters& counters = fabric.counters();
  totals.drops = {{"lost", lost},
                  {"dropped", overflowed},
                  {"unroutable", counters.unroutable.get()},
                  {"no_device", counters.no_device.get()},
                  {"stale_payloads", counters.stale_payloads.get()},
                  {"port_xmit_discards", discards},
                  {"port_rcv_errors", errors},
                  {"rx_icrc_encapsulated", icrc},
                  {"rx_unknown_qp", unknown},
                  {"rx_wrong_pkey", pkey}};
}

template <class T>
std::string cell(const std::optional<T>& value) {
  return value ? fmt::format("{}", *value) : std::string();
}

}  // namespace

double LinkTotals::utilization() const {
  if (capacity_bits <= 0) return 0;
  auto bits = static_cast<double>((bytes + packets * kEthernetOverhead) * 8);
  return std::min(bits / capacity_bits, 1.0);
}

FabricTotals FabricTotals::of(const Fabric& fabric, const Topology& topology,
                              const LinkCapacities& capacities, TimeNs now) {
  FabricTotals totals;
  LinkPlaces places;
  for (const Link* link : fabric.links()) {
    places[link] = totals.links.size();
    const LinkTotals& one = totals.links.emplace_back(totals_of(*link, capacities, now));
    totals.packet_hops += one.packets - one.lost;
    totals.pause_frames += one.pause_received;
    totals.paused_ns += one.paused_ns;
  }
  for (const auto& one : fabric.switches()) {
    totals.buffer_peak = std::max(totals.buffer_peak, one->peak().get());
    for (size_t i = 0; i < one->port_count(); ++i) add_switch_port(totals, places, *one, i);
  }
  add_waits(totals, fabric, topology, now);
  add_drops(totals, fabric);
  add_lacked_room(totals, fabric);
  return totals;
}

std::string links_csv_head() {
  return "variant,link,rate_bps,utilization,packets,bytes,lost,lost_bytes,overflowed,ce_marked,"
         "dropped,queue_peak,pause_received,paused_ns,pause_sent,ingress_peak,xmit_wait_ns\n";
}

std::string links_csv(const std::string& variant, const FabricTotals& totals) {
  std::string text;
  for (const LinkTotals& link : totals.links) {
    using Number = std::optional<uint64_t>;
    bool queued = link.egress.has_value(), stored = link.ingress.has_value();
    text += fmt::format(
        "{},{},{},{:.6f},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", variant, link.name,
        link.rate_bps, link.utilization(), link.packets, link.bytes, link.lost, link.lost_bytes,
        link.overflowed, cell(queued ? Number(link.egress->marked) : Number()),
        cell(queued ? Number(link.egress->dropped) : Number()),
        cell(queued ? Number(link.egress->queue_peak) : Number()), link.pause_received,
        link.paused_ns, cell(stored ? Number(link.ingress->pause_sent) : Number()),
        cell(stored ? Number(link.ingress->peak) : Number()), cell(link.xmit_wait_ns));
  }
  return text;
}

}  // namespace rocefs
