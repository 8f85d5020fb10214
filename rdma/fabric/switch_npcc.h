// SwitchNpcc: NPCC in one switch: observes its queues, and sends CNPs through it.
#pragma once

#include <functional>
#include <optional>

#include "rdma/cc/npcc.h"
#include "rdma/fabric/switch.h"

namespace rocefs {

// Core thread.
class SwitchNpcc final : public SwitchObserver, public NpccHost {
 public:
  // NpccHost::sender_of().
  using SenderLookup =
      std::function<std::optional<uint32_t>(const NpccFlowKey&, std::optional<uint32_t> last)>;
  // After all ports were added. All arguments outlive this object.
  SwitchNpcc(Scheduler& scheduler, PacketPool& pool, Switch& around, SenderLookup senders);
  ~SwitchNpcc() override { switch_.set_observer(nullptr); }

  Switch& around() { return switch_; }
  Npcc& npcc() { return npcc_; }

  void enqueued(const Packet& packet, size_t ingress, size_t egress, TimeNs now) override;
  uint64_t queue_length(size_t egress, size_t priority) const override {
    return switch_.queue(egress, priority).bytes.get();
  }
  std::optional<uint32_t> sender_of(const NpccFlowKey& flow,
                                    std::optional<uint32_t> last) const override {
    return senders_(flow, last);
  }
  void send(PacketPtr&& packet, TimeNs now) override { (void)switch_.send(std::move(packet), now); }
  void watching(bool any) override { switch_.set_observer(any ? this : nullptr); }

 private:
  Switch& switch_;
  const SenderLookup senders_;
  Npcc npcc_;
};

}  // namespace rocefs
