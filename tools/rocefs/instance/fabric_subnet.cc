#include "tools/rocefs/instance/fabric_subnet.h"

#include <algorithm>
#include <array>
#include <utility>

#include "rdma/nic/device.h"
#include "rdma/transport/port_counters.h"

namespace rocefs {
namespace {

// Rows of kPortCounters, with their divisors, that hold a channel adapter's PerfCounters. Counters
// without a row are constant in the tree too.
struct Shown {
  uint64_t PerfCounters::*member;
  std::string_view path;
};
constexpr Shown kShown[] = {
    {&PerfCounters::link_downed, "counters/link_downed"},
    {&PerfCounters::rcv_errors, "counters/port_rcv_errors"},
    {&PerfCounters::xmit_discards, "counters/port_xmit_discards"},
    {&PerfCounters::xmit_wait, "counters/port_xmit_wait"},
    {&PerfCounters::xmit_data, "counters/port_xmit_data"},
    {&PerfCounters::rcv_data, "counters/port_rcv_data"},
    {&PerfCounters::xmit_packets, "counters/port_xmit_packets"},
    {&PerfCounters::rcv_packets, "counters/port_rcv_packets"},
    {&PerfCounters::unicast_xmit, "counters/unicast_xmit_packets"},
    {&PerfCounters::unicast_rcv, "counters/unicast_rcv_packets"},
    {&PerfCounters::multicast_xmit, "counters/multicast_xmit_packets"},
    {&PerfCounters::multicast_rcv, "counters/multicast_rcv_packets"},
};
consteval std::array<size_t, std::size(kShown)> find_rows() {
  std::array<size_t, std::size(kShown)> rows{};
  for (size_t i = 0; i < rows.size(); ++i) {
    while (kPortCounters[rows[i]].path != kShown[i].path) ++rows[i];
  }
  return rows;
}
constexpr auto kRows = find_rows();

// Packets or octets that a link delivered. Saturates at 0: packets in flight when the counters were
// cleared may be lost later.
uint64_t arrived(const Counter& all, const Counter& lost) {
  return all.get() - std::min(all.get(), lost.get());
}

PerfCounters counters_of(const SwitchPort& port) {
  constexpr uint64_t kUnit = 4;  // octets, of data
  PerfCounters all;
  const LinkCounters& out = port.egress.link->counters();
  const LinkCounters& in = port.ingress.link->counters();
  const LinkLosses& lost = port.ingress.link->losses();
  all.xmit_packets = all.unicast_xmit = out.packets.get();
  all.xmit_data = out.bytes.get() / kUnit;
  all.rcv_packets = all.unicast_rcv = arrived(in.packets, lost.lost);
  all.rcv_data = arrived(in.bytes, lost.lost_bytes) / kUnit;
  all.link_downed = port.rest->cable_counters.link_downed.get();
  for (const EgressCounters& one : port.rest->egress_counters)
    all.xmit_discards += one.dropped.get();
  return all;
}

// Clears `packets` and `lost` together: received is their difference.
void clear(SwitchPort& port, const PerfCounters& which) {
  auto clear_packets = [](Link& link) {
    link.counters().packets.set(0);
    link.losses().lost.set(0);
  };
  auto clear_bytes = [](Link& link) {
    link.counters().bytes.set(0);
    link.losses().lost_bytes.set(0);
  };
  if (which.xmit_packets || which.unicast_xmit) clear_packets(*port.egress.link);
  if (which.rcv_packets || which.unicast_rcv) clear_packets(*port.ingress.link);
  if (which.xmit_data) clear_bytes(*port.egress.link);
  if (which.rcv_data) clear_bytes(*port.ingress.link);
  if (which.link_downed) port.rest->cable_counters.link_downed.set(0);
  if (!which.xmit_discards) return;
  for (EgressCounters& one : port.rest->egress_counters) one.dropped.set(0);
}

}  // namespace

bool FabricSubnet::present(size_t node) const {
  const Device* device = hardware_[node].device;
  return !device || device->present();
}

FabricSubnet::Cable FabricSubnet::cable(size_t node, uint8_t port) const {
  const Hardware& hardware = hardware_[node];
  if (port == 0 || port > subnet_.nodes[node].port_count()) return {};
  if (hardware.hub)
    return {hardware.hub->port(port - 1u).egress.link, hardware.hub->port(port - 1u).ingress.link};
  Port& at = hardware.device->port(port);
  if (at.line_bps() == 0) return {};
  return {&at.egress(), &at.ingress()};
}

bool FabricSubnet::up(size_t node, uint8_t port) const {
  if (port == 0) return true;
  Cable at = cable(node, port);
  bool inside = subnet_.nodes[node].ports[port].peer != SubnetPort::kNoPeer;
  return inside && at.out && at.out->up() && at.in->up();
}

uint64_t FabricSubnet::rate_bps(size_t node, uint8_t port) const {
  Cable at = cable(node, port);
  return at.out ? at.out->parameters().rate_bps : 0;
}

std::string FabricSubnet::description(size_t node) const {
  const Hardware& hardware = hardware_[node];
  return hardware.hub ? hardware.hub->name() + " emulated switch"
                      : hardware.device->description().text();
}

PerfCounters FabricSubnet::counters(size_t node, uint8_t port) const {
  if (!cable(node, port).out) return {};
  const Hardware& hardware = hardware_[node];
  if (hardware.hub) return counters_of(hardware.hub->port(port - 1u));
  PerfCounters all;
  const PortCounters& shown = hardware.device->port(port).counters();
  for (size_t i = 0; i < kRows.size(); ++i) {
    const auto& row = kPortCounters[kRows[i]];
    all.*kShown[i].member = (shown.*row.member).get() / row.divisor;
  }
  return all;
}

// Leaves cables to uplinks alone: they are in no subnet.
void FabricSubnet::set_enabled(size_t node, uint8_t port, bool enabled) {
  Cable at = cable(node, port);
  bool inside = subnet_.nodes[node].ports[port].peer != SubnetPort::kNoPeer;
  if (!inside || !at.out || !set_link_) return;
  for (const Link* link : {at.out, at.in}) {
    if (link->parameters().up != enabled) set_link_(*link, enabled);
  }
}

void FabricSubnet::set_manager_lid(size_t node, uint8_t port, uint16_t lid) {
  Device* device = hardware_[node].device;
  if (device) device->port(port).set_manager_lid(lid);
}

void FabricSubnet::clear_counters(size_t node, uint8_t port, const PerfCounters& which) {
  if (!cable(node, port).out) return;
  const Hardware& hardware = hardware_[node];
  if (hardware.hub) return clear(hardware.hub->port(port - 1u), which);
  PortCounters& shown = hardware.device->port(port).counters();
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (which.*kShown[i].member) (shown.*kPortCounters[kRows[i]].member).set(0);
  }
}

}  // namespace rocefs
