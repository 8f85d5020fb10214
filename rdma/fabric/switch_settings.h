// What a switch is set to: its knobs, the rules that span them, and how its buffer is divided
// between what all share and what PFC keeps free for packets that are still under way.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/tree/knob.h"
#include "rdma/cc/red_marker.h"
#include "rdma/fabric/link.h"

namespace rocefs {

inline constexpr KnobRow kSwitchKnobs[] = {
    {"ecn/enable", KnobType::kBool, 0, 1, "0", "", "",
     "1: packets whose transport is capable of ECN are marked as congested (CE) by the length of "
     "the egress queue of their priority"},
    {"ecn/kmin", KnobType::kSize, 0, uint64_t{1} << 40, "5K", "", "byte",
     "queue up to which none is marked; at most kmax. With PFC on, one above its bound (PAUSE may "
     "come before marks) is accepted with a warning in dmesg"},
    {"ecn/kmax", KnobType::kSize, 0, uint64_t{1} << 40, "200K", "", "byte",
     "queue up to which the probability rises to pmax; beyond it all are marked"},
    {"ecn/pmax", KnobType::kProbability, 0, 1, "0.01", "", "", "probability of a mark at kmax"},
    {"ecn/mark_at", KnobType::kWord, 0, 0, "enqueue", "enqueue dequeue", "",
     "enqueue: by the queue that a packet finds; dequeue: by the queue that it leaves behind"},
    {"pfc/enable", KnobType::kBool, 0, 1, "1", "", "",
     "1: the switch PAUSEs the sender of a priority by what its ingress port stores of it"},
    {"pfc/mode", KnobType::kWord, 0, 0, "dynamic", "static dynamic", "",
     "static: PAUSE above threshold; dynamic: above beta/8 of what is free of the shared buffer"},
    {"pfc/threshold", KnobType::kSize, 0, uint64_t{1} << 40, "0", "", "byte",
     "static: per ingress port and priority, at most (buffer/size - 8 n headroom)/(8 n) with n "
     "ports; 0: that. RESUME two of the largest packets below"},
    {"pfc/beta", KnobType::kUint, 1, 1024, "8", "", "",
     "dynamic: PAUSE above beta (buffer/size - 8 n headroom - used)/8"},
    {"pfc/headroom", KnobType::kSize, 0, uint64_t{1} << 40, "0", "", "byte",
     "kept free per ingress port and priority for what comes after PAUSE; 0: what the link's rate "
     "and delay call for, for each link its own, but at most half of its share of the buffer"},
    {"buffer/size", KnobType::kSize, 0, uint64_t{1} << 40, "12M", "", "byte",
     "what the switch can store; what does not fit is dropped"},
};

// IP header to ICRC: a full payload behind the longest headers.
inline constexpr uint64_t kMaxPacket = kMaxMtu + wire::kMaxHeaderLen + wire::kIcrcLen;

struct PfcSettings {
  bool enable = false;
  bool dynamic = false;
  uint64_t threshold = 0;  // octets; 0: the bound
  uint64_t beta = 0;
  uint64_t headroom = 0;  // octets; 0: by the link
};

struct SwitchSettings {
  EcnSettings ecn;
  PfcSettings pfc;
  uint64_t buffer = 0;  // octets

  // In the order of kSwitchKnobs.
  static SwitchSettings of(std::span<const KnobValue> values);
  // The rows' initial values.
  static SwitchSettings initial();
};

// Octets that may still come through `in` once the switch has decided to PAUSE through `out`, the
// other direction of that cable.
uint64_t headroom_of(const LinkParameters& in, const LinkParameters& out);

// The laws of PFC's thresholds (Zhu et al., SIGCOMM 2015, section 4): t_PFC and t_ECN.
struct BufferPlan {
  bool pfc = false, dynamic = false;
  uint64_t ports = 0;
  uint64_t beta = 0;
  uint64_t shared = 0;        // without the headroom of all ports and priorities
  uint64_t static_bound = 0;  // the highest t_PFC that may be set
  uint64_t threshold = 0;     // t_PFC where it is static

  // `reserved` is the headroom of all ports and priorities together.
  BufferPlan() = default;
  BufferPlan(const SwitchSettings& settings, uint64_t ports, uint64_t reserved);

  // An ingress port's priority that stores more is to pause, with `used` octets in the switch.
  uint64_t pause_above(uint64_t used) const {
    if (!dynamic) return threshold;
    return used < shared ? beta * (shared - used) / kPriorities : 0;
  }
  // Whether it may go on.
  bool resumes(uint64_t stored, uint64_t used) const {
    return stored == 0 || stored + 2 * kMaxPacket <= pause_above(used);
  }
  // t_ECN up to which no PAUSE can come before the first mark.
  uint64_t ecn_bound() const;
};

// EINVAL, with both values, for Kmin above Kmax, a headroom that leaves nothing to share, and a
// threshold above its bound. `reserved` is what headroom=0 comes to.
Result<void> check_settings(const SwitchSettings& settings, uint64_t ports, uint64_t reserved);

}  // namespace rocefs
