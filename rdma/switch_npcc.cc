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

std::optional<uint32_t> SwitchNpcc::sender_of(const NpccFlowKey& flow) const {
  for (const auto& device : fabric_.devices()) {
    for (size_t number = 1; number <= device->port_count(); ++number) {
      const std::vector<Ip>& gids = device->port(number).gids();
      if (std::find(gids.begin(), gids.end(), flow.source) == gids.end()) continue;
      return device->sender_of(flow.source, flow.destination, flow.dest_qpn);
    }
  }
  return std::nullopt;
}

}  // namespace rocefs
