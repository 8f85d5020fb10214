// Cfr: configuration-free RoCEv2 on a device: its settings, and the controller that replaces it. As
// a receiver the device answers packets that arrive out of order with CNPs; as a sender its queue
// pairs obey CNPs by windows (rdma/cc/window_limiter.h).
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "core/base/counter.h"
#include "core/tree/knob.h"

namespace rocefs {

class Device;

// Sets the windows of all queue pairs of a device in place of CFR: PCC.
class WindowController {
 public:
  virtual ~WindowController() = default;
  // Core thread: the windows are no longer the controller's, because the device has left.
  virtual void windows_lost(Device& device) = 0;
};

inline constexpr KnobRow kCfrKnobs[] = {
    {"enable", KnobType::kBool, 0, 1, "0", "", "",
     "as receiver: packets that arrive out of order are answered by CNPs, without ECN in switches; "
     "as sender: RC requests obey CNPs by a window in octets, and READ responses by so many octets "
     "in a usual round trip (UC and UD do not). EBUSY, and shown as 0, while PCC runs"},
    {"ooo_threshold", KnobType::kUint, 1, 8388607, "1", "", "packet",
     "distance from the expected PSN at which an RC packet is answered by a CNP"},
};

struct CfrSettings {
  bool enable;
  uint32_t ooo_threshold;  // packets

  // Reads values in the order of kCfrKnobs.
  static CfrSettings of(std::span<const KnobValue> values) {
    auto number = [&](size_t index) { return std::get<uint64_t>(values[index]); };
    return {.enable = number(knob_index(kCfrKnobs, "enable")) != 0,
            .ooo_threshold = static_cast<uint32_t>(number(knob_index(kCfrKnobs, "ooo_threshold")))};
  }
};

class Cfr final : public KnobOwner {
 public:
  // `changed` is called when the active reaction (PCC, CFR, DCQCN RP) changes.
  explicit Cfr(std::function<void()> changed);

  // Whether CFR acts; whether a controller acts in its place.
  bool enabled() const { return settings_.enable && !controller_; }
  bool controlled() const { return controller_ != nullptr; }
  uint32_t ooo_threshold() const { return settings_.ooo_threshold; }

  // Takes the windows of every queue pair, and disables CFR meanwhile. EBUSY when another
  // controller has them. Called by rdma/transport/registers.h, which has the page for them.
  Result<void> take_windows(WindowController& controller);
  // Returns the windows: CFR acts again as its knobs say. No effect for another controller.
  void return_windows(const WindowController& controller);
  // Takes the windows from the controller, because the device leaves.
  void revoke_windows(Device& device);
  // Restores initial values.
  void reset();

  // In the order of kCfrKnobs. EBUSY for a change of enable while a controller acts in CFR's place.
  Result<void> check(std::span<const KnobValue> proposed) const override;
  void apply(std::span<const KnobValue> values) override;

  // Any thread.
  bool shown_as_controlled() const { return controlled_.get() != 0; }

 private:
  std::function<void()> changed_;
  WindowController* controller_ = nullptr;
  CfrSettings settings_ = CfrSettings::of(initial_values(kCfrKnobs));
  Counter controlled_;
};

}  // namespace rocefs
