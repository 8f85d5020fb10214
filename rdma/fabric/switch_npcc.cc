#include "rdma/fabric/switch_npcc.h"

namespace rocefs {

SwitchNpcc::SwitchNpcc(Scheduler& scheduler, PacketPool& pool, Switch& around, SenderLookup senders)
    : switch_(around), senders_(std::move(senders)), npcc_(*this, scheduler, pool) {
  for (size_t i = 0; i < around.port_count(); ++i) npcc_.add_port();
}

void SwitchNpcc::enqueued(const Packet& packet, size_t ingress, size_t egress, TimeNs now) {
  size_t priority = priority_of(packet);
  if (npcc_.watches(egress, priority)) {
    npcc_.packet_queued(packet, ingress, egress, priority, now);
  }
}

}  // namespace rocefs
