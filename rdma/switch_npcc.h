// SwitchNpcc: NPCC in one switch: it sees what the switch queues, and sends its CNPs through it.
#pragma once

#include "rdma/npcc.h"
#include "rdma/switch.h"

namespace rocefs {

class Device;
class Fabric;

// Core thread.
class SwitchNpcc final : public SwitchObserver, public NpccHost {
 public:
  // The switch has all its ports. It and the fabric outlive this.
  SwitchNpcc(Fabric& fabric, Switch& around);
  ~SwitchNpcc() override { switch_.set_observer(nullptr); }

  Switch& around() { return switch_; }
  Npcc& npcc() { return npcc_; }

  void enqueued(const Packet& packet, size_t ingress, size_t egress, TimeNs now) override;
  uint64_t queue_length(size_t egress, size_t priority) const override {
    return switch_.queued(egress, priority);
  }
  // As the devices of this fabric know it: the sender, or else who is connected to it.
  std::optional<uint32_t> sender_of(const NpccFlowKey& flow) const override;
  void send(Packet* packet, TimeNs now) override { (void)switch_.send(packet, now); }
  void watching(bool any) override { switch_.set_observer(any ? this : nullptr); }

 private:
  Device* device_at(const Ip& address) const;

  Fabric& fabric_;
  Switch& switch_;
  Npcc npcc_;
};

}  // namespace rocefs
