// Settings of a switch: its knobs, the rules that span them, and the division of its buffer into a
// shared part and PFC's headroom for packets in flight.
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
     "1: ECN-capable packets are marked (CE) by the length of the egress queue of their priority"},
    {"ecn/kmin", KnobType::kSize, 0, uint64_t{1} << 40, "5K", "", "byte",
     "queue length up to which no packet is marked; at most kmax. With ECN and PFC on, a value "
     "above its bound (PAUSE may precede marks) is accepted with a warning in dmesg"},
    {"ecn/kmax", KnobType::kSize, 0, uint64_t{1} << 40, "200K", "", "byte",
     "queue length up to which the probability rises to pmax; beyond it all packets are marked"},
    {"ecn/pmax", KnobType::kProbability, 0, 1, "0.01", "", "", "probability of a mark at kmax"},
    {"ecn/mark_at", KnobType::kWord, 0, 0, "enqueue", "enqueue dequeue", "",
     "enqueue: by the queue length before the packet is queued; dequeue: by the length after it "
     "has left"},
    {"pfc/enable", KnobType::kBool, 0, 1, "1", "", "",
     "1: the switch PAUSEs the sender of a priority by the octets stored for its ingress port"},
    {"pfc/mode", KnobType::kWord, 0, 0, "dynamic", "static dynamic", "",
     "static: PAUSE above threshold; dynamic: above beta/8 of the free shared buffer"},
    {"pfc/threshold", KnobType::kSize, 0, uint64_t{1} << 40, "0", "", "byte",
     "static: per ingress port and priority, at most (buffer/size - 8 n headroom)/(8 n) with n "
     "ports; 0: the maximum. RESUME at two maximum-size packets less"},
    {"pfc/beta", KnobType::kUint, 1, 1024, "8", "", "",
     "dynamic: PAUSE above beta (buffer/size - 8 n headroom - used)/8"},
    {"pfc/headroom", KnobType::kSize, 0, uint64_t{1} << 40, "0", "", "byte",
     "reserved per ingress port and priority for packets that arrive after PAUSE; 0: by each "
     "link's rate and delay, at most half of its share of the buffer"},
    {"int/enable", KnobType::kBool, 0, 1, "0", "", "",
     "1: packets that ask for in-band telemetry get the length of the queue that they leave, the "
     "octets that its port has sent, the time, and the port's rate"},
    {"buffer/size", KnobType::kSize, 0, uint64_t{1} << 40, "12M", "", "byte",
     "octets that the switch can store; packets beyond it are dropped"},
};

// IP header to ICRC: a full payload after the longest headers.
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
  bool telemetry = false;  // int/enable
  uint64_t buffer = 0;     // octets

  // In the order of kSwitchKnobs.
  static SwitchSettings of(std::span<const KnobValue> values);
  // The rows' initial values, and such with a buffer of so many octets.
  static SwitchSettings initial();
  static std::vector<KnobValue> initial_values(uint64_t buffer);
};

// Octets that may still arrive through `in` once the switch has decided to send PAUSE through
// `out`, the other direction of that cable; packets may carry so many octets of options.
uint64_t headroom_of(const LinkParameters& in, const LinkParameters& out, uint64_t options = 0);

// The laws of PFC's thresholds (Zhu et al., SIGCOMM 2015, section 4): t_PFC and t_ECN.
struct BufferPlan {
  bool pfc = false, dynamic = false;
  uint64_t ports = 0;
  uint64_t beta = 0;
  uint64_t shared = 0;        // without the headroom of all ports and priorities
  uint64_t static_bound = 0;  // maximum of a static t_PFC
  uint64_t threshold = 0;     // static t_PFC

  // `reserved` is the headroom of all ports and priorities together.
  BufferPlan() = default;
  BufferPlan(const SwitchSettings& settings, uint64_t ports, uint64_t reserved);

  // Octets above which a port's priority pauses, with `used` octets in the switch.
  uint64_t pause_above(uint64_t used) const {
    if (!dynamic) return threshold;
    return used < shared ? beta * (shared - used) / kPriorities : 0;
  }
  // Whether a paused priority may resume.
  bool resumes(uint64_t stored, uint64_t used) const {
    return stored == 0 || stored + 2 * kMaxPacket <= pause_above(used);
  }
  // Maximum t_ECN that marks before any PAUSE.
  uint64_t ecn_bound() const;
};

// EINVAL, with both values, for Kmin above Kmax, a headroom that leaves nothing to share, and a
// threshold above its bound. `reserved`: the headroom that headroom=0 gives.
Result<void> check_settings(const SwitchSettings& settings, uint64_t ports, uint64_t reserved);

}  // namespace rocefs
