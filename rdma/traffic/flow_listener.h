// FlowListener: a flow in this mount while it waits for another mount to begin it. It ends when its
// device leaves. Core thread.
#pragma once

#include <functional>
#include <memory>

#include "rdma/nic/device.h"
#include "rdma/traffic/flow_run.h"

namespace rocefs {

class FlowListener final : public FlowRun, public DeviceClient {
 public:
  // `removed` runs when the device leaves. ENODEV without a driver.
  using Removed = std::function<void()>;
  static Result<std::shared_ptr<FlowListener>> create(Device& device, Removed removed) {
    if (!device.present()) return errorf(ENODEV, "{} has no driver", device.name());
    return std::make_shared<FlowListener>(device, std::move(removed));
  }
  FlowListener(Device& device, Removed removed) : device_(device), removed_(std::move(removed)) {
    device_.add_client(*this);
  }
  ~FlowListener() override { device_.remove_client(*this); }

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
