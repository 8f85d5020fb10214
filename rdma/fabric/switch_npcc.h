// SwitchNpcc: NPCC in one switch: observes its queues, and sends CNPs through it.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "rdma/cc/npcc.h"
#include "rdma/fabric/switch.h"

namespace rocefs {

// Core thread.
class SwitchNpcc final : public SwitchObserver, public NpccHost {
 public:
  struct SenderLookup {
    // NpccHost::sender_of(). Alone, unless the flow is near.
    std::function<std::optional<uint32_t>(const NpccFlowKey&, std::optional<uint32_t> last)> find;
    // Whether the queue pairs that tell are of the switch's part of the fabric.
    std::function<bool(const NpccFlowKey&)> near;
    // FabricResources::alone().
    std::function<void(Task)> alone;
  };
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
                                    std::optional<uint32_t> last) const override;
  void send(PacketPtr&& packet, TimeNs now) override { (void)switch_.send(std::move(packet), now); }
  void watching(bool any) override { switch_.set_observer(any ? this : nullptr); }

 private:
  struct Asked {
    NpccFlowKey flow;
    std::optional<uint32_t> last;
  };
  void answer_asked();

  Switch& switch_;
  const SenderLookup senders_;
  Scheduler& scheduler_;
  Npcc npcc_;
  // Flows whose sender is to be found alone, and when such a task was given last.
  mutable std::vector<Asked> asked_;
  mutable TimeNs asked_at_ = 0;
};

}  // namespace rocefs
