// WaitingFlow: what stands for a flow in this mount while it waits for another mount to begin it.
// It needs its device. On the core's thread.
#pragma once

#include <functional>
#include <memory>

#include "rdma/nic/device.h"
#include "rdma/traffic/flow.h"

namespace rocefs {

class WaitingFlow final : public FlowRun, public DeviceClient {
 public:
  // `removed` runs when the device leaves. ENODEV if it is not there.
  using Removed = std::function<void()>;
  static Result<std::shared_ptr<WaitingFlow>> create(Device& device, Removed removed) {
    if (!device.present()) return errorf(ENODEV, "{} has no driver", device.name());
    return std::make_shared<WaitingFlow>(device, std::move(removed));
  }
  WaitingFlow(Device& device, Removed removed) : device_(device), removed_(std::move(removed)) {
    device_.add_client(*this);
  }
  ~WaitingFlow() override { device_.remove_client(*this); }

  void device_removed(Device&) override {
    device_.remove_client(*this);
    removed_();
  }
  void stop() override {}
  std::shared_ptr<LocalMemory> received() const override { return nullptr; }

 private:
  Device& device_;
  const Removed removed_;
};

}  // namespace rocefs
