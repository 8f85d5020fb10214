// Selective retransmission: its agreement and its encoding. Each end sets a bit in every packet of
// a reliable connection while it is enabled; an enabled end acts on the other's bit. The ICRC does
// not cover the bit, so that it only chooses how a loss is repaired, never what is acknowledged.
// The meaning of a NAK is inside the ICRC.
#pragma once

#include <cstdint>
#include <span>

#include "core/tree/knob.h"

namespace rocefs {

inline constexpr KnobRow kSelectiveKnobs[] = {
    {"sr/enable", KnobType::kBool, 0, 0, "0", "", "",
     "selective retransmission with far ends that have it enabled, too; others get go-back-N"},
    {"sr/reorder_window", KnobType::kUint, 0, 2048, "64", "", "packet",
     "a packet that more than so many have overtaken is lost, or that is missing for as long as "
     "twice so many full ones take on the port's link"},
};

// Bit of the BTH beside the A bit, which the ICRC covers: a sequence NAK whose AETH names the one
// missing PSN in place of the MSN. The PSN in its BTH has the meaning of any sequence NAK's, so
// that a peer that takes it for one completes no request that has not arrived.
inline constexpr uint8_t kSelectiveNak = 0x01;
// PSNs from the oldest missing one on that a responder keeps, and that a requester has in flight:
// 268 MB of the largest packets. Packets beyond are dropped.
inline constexpr uint32_t kMaxOutOfOrder = 1u << 16;

// Settings of a device's knobs. Core thread.
class SelectiveSettings final : public KnobOwner {
 public:
  SelectiveSettings() { reset(); }
  bool enabled() const { return enabled_; }
  uint32_t reorder_window() const { return reorder_window_; }
  void apply(std::span<const KnobValue> values) override {
    enabled_ = std::get<uint64_t>(values[knob_index(kSelectiveKnobs, "sr/enable")]) != 0;
    reorder_window_ = static_cast<uint32_t>(
        std::get<uint64_t>(values[knob_index(kSelectiveKnobs, "sr/reorder_window")]));
  }
  // Returns to the knobs' initial values.
  void reset() { apply(initial_values(kSelectiveKnobs)); }

 private:
  bool enabled_;
  uint32_t reorder_window_;
};

// Belief of one half of a queue pair about its far end. One bit that the wire flips does not end an
// agreement.
class Agreement {
 public:
  void heard(bool sr_capable) {
    if (sr_capable) {
      state_ = kAgrees;
      without_ = 0;
    } else if (state_ == kUnknown || ++without_ >= kWithoutToEnd) {
      state_ = kRefuses;
    }
  }
  bool agrees() const { return state_ == kAgrees; }
  // Whether the far end has not refused yet.
  bool may_agree() const { return state_ != kRefuses; }
  void forget() { *this = {}; }

 private:
  static constexpr uint8_t kWithoutToEnd = 3;  // packets in a row
  enum State : uint8_t { kUnknown, kAgrees, kRefuses };
  State state_ = kUnknown;
  uint8_t without_ = 0;
};

}  // namespace rocefs
