// Pacing of windows: the settings of a device. A window that is not paced leaves as a burst each
// time that acknowledgements open it.
#pragma once

#include <functional>
#include <span>
#include <utility>

#include "core/tree/knob.h"

namespace rocefs {

inline constexpr KnobRow kPacingKnobs[] = {
    {"pacing/enable", KnobType::kBool, 0, 0, "0", "", "",
     "a window, of CFR or PCC, also paces the RC requests that it limits: by window / round trip, "
     "smoothed (7/8 old, 1/8 new) over what the queue pair measures from a packet to its "
     "acknowledgement, for which each packet asks; not before the first measurement"},
};

// Core thread.
class PacingSettings final : public KnobOwner {
 public:
  // `changed` is called when the setting has changed.
  explicit PacingSettings(std::function<void()> changed) : changed_(std::move(changed)) {}
  bool enabled() const { return enabled_; }
  void apply(std::span<const KnobValue> values) override {
    bool enable = std::get<uint64_t>(values[knob_index(kPacingKnobs, "pacing/enable")]) != 0;
    if (std::exchange(enabled_, enable) != enable) changed_();
  }
  // Returns to the knobs' initial values.
  void reset() { apply(initial_values(kPacingKnobs)); }

 private:
  std::function<void()> changed_;
  bool enabled_ = false;
};

}  // namespace rocefs
