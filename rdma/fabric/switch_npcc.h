// SwitchNpcc: NPCC in one switch: it sees what the switch queues, and sends its CNPs through it.
#pragma once

#include <functional>
#include <optional>

#include "rdma/cc/npcc.h"
#include "rdma/fabric/switch.h"

namespace rocefs {

// Core thread.
class SwitchNpcc final : public SwitchObserver, public NpccHost {
 public:
  // The number of the queue pair that sends a flow, if it is known.
  using SenderLookup = std::function<std::optional<uint32_t>(const NpccFlowKey&)>;
  // The switch has all its ports. All of these outlive it.
  SwitchNpcc(Scheduler& scheduler, PacketPool& pool, Switch& around, SenderLookup senders);
  ~SwitchNpcc() override { switch_.set_observer(nullptr); }

  Switch& around() { return switch_; }
  Npcc& npcc() { return npcc_; }

  void enqueued(const Packet& packet, size_t ingress, size_t egress, TimeNs now) override;
  uint64_t queue_length(size_t egress, size_t priority) const override {
    return switch_.queued(egress, priority);
  }
  std::optional<uint32_t> sender_of(const NpccFlowKey& flow) const override {
    return senders_(flow);
  }
  void send(Packet* packet, TimeNs now) override { (void)switch_.send(packet, now); }
  void watching(bool any) override { switch_.set_observer(any ? this : nullptr); }

 private:
  Switch& switch_;
  const SenderLookup senders_;
  Npcc npcc_;
};

}  // namespace rocefs
