#include "rdma/switch_npcc.h"

#include <algorithm>

#include "rdma/device.h"
#include "rdma/fabric.h"

namespace rocefs {

SwitchNpcc::SwitchNpcc(Fabric& fabric, Switch& around)
    : fabric_(fabric), switch_(around), npcc_(*this, fabric.scheduler(), fabric.pool()) {
  for (size_t i = 0; i < around.port_count(); ++i) npcc_.add_port();
}

void SwitchNpcc::enqueued(const Packet& packet, size_t ingress, size_t egress, TimeNs now) {
  size_t priority = priority_of(packet);
  if (npcc_.watches(egress, priority)) {
    npcc_.packet_queued(packet, ingress, egress, priority, now);
  }
}

Device* SwitchNpcc::device_at(const Ip& address) const {
  for (const auto& device : fabric_.devices()) {
    for (size_t number = 1; number <= device->port_count(); ++number) {
      const std::vector<Ip>& gids = device->port(number).gids();
      if (std::find(gids.begin(), gids.end(), address) != gids.end()) return device.get();
    }
  }
  return nullptr;
}

// A sender elsewhere is known to the queue pair that is connected to it: from the CM's messages, or
// as its program was told.
std::optional<uint32_t> SwitchNpcc::sender_of(const NpccFlowKey& flow) const {
  if (Device* sender = device_at(flow.source)) {
    return sender->sender_of(flow.source, flow.destination, flow.dest_qpn);
  }
  Device* receiver = device_at(flow.destination);
  const Qp* qp = receiver ? receiver->find_qp(flow.dest_qpn) : nullptr;
  if (!qp || qp->type() == QpType::kUd || !qp->receives_packets()) return std::nullopt;
  const QpAttributes& attributes = qp->attributes();
  bool theirs = attributes.path.remote == flow.source && attributes.path.local == flow.destination;
  return theirs ? std::optional(attributes.remote_qpn) : std::nullopt;
}

}  // namespace rocefs
