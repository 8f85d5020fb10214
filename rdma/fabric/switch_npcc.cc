#include "rdma/fabric/switch_npcc.h"

namespace rocefs {

SwitchNpcc::SwitchNpcc(Scheduler& scheduler, PacketPool& pool, Switch& around, SenderLookup senders)
    : switch_(around),
      senders_(std::move(senders)),
      scheduler_(scheduler),
      npcc_(*this, scheduler, pool) {
  for (size_t i = 0; i < around.port_count(); ++i) npcc_.add_port();
}

// A queue pair of another packet core is looked for alone. That stops all cores: it is not done
// more often for a flow whose sender was found before.
std::optional<uint32_t> SwitchNpcc::sender_of(const NpccFlowKey& flow,
                                              std::optional<uint32_t> last) const {
  if (senders_.near(flow)) return senders_.find(flow, last);
  const TimeNs now = scheduler_.now();
  if ((last && now - asked_at_ < kMillisecond) || asked_.size() >= NpccFlows::kCapacity) {
    return last;
  }
  asked_.push_back({flow, last});
  if (asked_.size() > 1) return last;
  asked_at_ = now;
  auto* self = const_cast<SwitchNpcc*>(this);
  senders_.alone([self] { self->answer_asked(); });
  return last;
}

void SwitchNpcc::answer_asked() {
  for (const Asked& one : std::exchange(asked_, {})) {
    npcc_.learn_sender(one.flow, senders_.find(one.flow, one.last));
  }
}

void SwitchNpcc::enqueued(const Packet& packet, size_t ingress, size_t egress, TimeNs now) {
  size_t priority = priority_of(packet);
  if (npcc_.watches(egress, priority)) {
    npcc_.packet_queued(packet, ingress, egress, priority, now);
  }
}

}  // namespace rocefs
