#include "rdma/cc/cfr.h"

#include <cerrno>
#include <utility>

#include "rdma/cc/ecn_knobs.h"

namespace rocefs {
namespace {

constexpr size_t kEnable = knob_index(kCfrKnobs, "enable");
constexpr size_t kThreshold = knob_index(kCfrKnobs, "ooo_threshold");

}  // namespace

Cfr::Cfr(std::function<void()> changed) : changed_(std::move(changed)) {}

Result<void> Cfr::take_windows(WindowOwner& owner) {
  if (owner_) return Error{EBUSY, "the windows of the device are taken"};
  owner_ = &owner;
  owned_.set(1);
  changed_();
  return {};
}

void Cfr::return_windows(const WindowOwner& owner) {
  if (owner_ != &owner) return;
  owner_ = nullptr;
  owned_.set(0);
  changed_();
}

void Cfr::revoke_windows(Device& device) {
  WindowOwner* owner = owner_;
  if (!owner) return;
  return_windows(*owner);
  owner->windows_lost(device);
}

void Cfr::reset() {
  apply(initial_values(kCfrKnobs));
}

Result<void> Cfr::check(std::span<const KnobValue> values) const {
  bool setting = std::get<uint64_t>(values[kEnable]) != 0;
  if (owner_ && setting != setting_) return Error{EBUSY, "CFR gives way while PCC runs"};
  return {};
}

void Cfr::apply(std::span<const KnobValue> values) {
  ooo_threshold_ = static_cast<uint32_t>(std::get<uint64_t>(values[kThreshold]));
  bool setting = std::get<uint64_t>(values[kEnable]) != 0;
  if (std::exchange(setting_, setting) != setting) changed_();
}

}  // namespace rocefs
