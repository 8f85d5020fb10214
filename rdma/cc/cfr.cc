#include "rdma/cc/cfr.h"

#include <cerrno>
#include <utility>

#include "rdma/cc/ecn_knobs.h"

namespace rocefs {

Cfr::Cfr(std::function<void()> changed) : changed_(std::move(changed)) {}

Result<void> Cfr::take_windows(WindowController& controller) {
  if (controller_) return Error{EBUSY, "the windows of the device are taken"};
  controller_ = &controller;
  controlled_.set(1);
  changed_();
  return {};
}

void Cfr::return_windows(const WindowController& controller) {
  if (controller_ != &controller) return;
  controller_ = nullptr;
  controlled_.set(0);
  changed_();
}

void Cfr::revoke_windows(Device& device) {
  WindowController* controller = controller_;
  if (!controller) return;
  return_windows(*controller);
  controller->windows_lost(device);
}

void Cfr::reset() {
  apply(initial_values(kCfrKnobs));
}

Result<void> Cfr::check(std::span<const KnobValue> values) const {
  if (controller_ && CfrSettings::of(values).enable != settings_.enable)
    return Error{EBUSY, "CFR is disabled while PCC runs"};
  return {};
}

void Cfr::apply(std::span<const KnobValue> values) {
  CfrSettings before = std::exchange(settings_, CfrSettings::of(values));
  if (before.enable != settings_.enable) changed_();
}

}  // namespace rocefs
