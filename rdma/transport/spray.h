// Packet spraying: a flow's requests and READ responses vary their UDP source port, so that
// switches that hash it lead them over several paths. Acknowledgements, NAKs, CNPs and answers to
// atomics keep the flow's own port, and so do all packets of UC, whose receiver gives up a message
// of which a packet comes early.
#pragma once

#include <cstdint>
#include <span>

#include "core/base/time.h"
#include "core/tree/knob.h"

namespace rocefs {

inline constexpr KnobRow kSprayKnobs[] = {
    {"ops/enable", KnobType::kBool, 0, 0, "0", "", "",
     "packet spraying: requests and READ responses vary their UDP source port; UC's do not, since "
     "nothing puts its packets in order again"},
    {"ops/udp_port_range", KnobType::kUint, 1, 16384, "16", "", "port",
     "how many source ports a flow takes in turn, from its own on; 1 does not spray"},
    {"ops/ops_timer", KnobType::kWord, 0, 0, "default",
     "default level1 level2 level3 level4 level5", "",
     "how long a flow stays on a port: one packet, or 10, 20, 50, 100, 200 us (level1 to 5)"},
};

// Settings of a device's knobs. Core thread.
class SpraySettings final : public KnobOwner {
 public:
  SpraySettings() { reset(); }
  bool on() const { return range_ > 1; }
  uint16_t range() const { return range_; }  // 1: no spraying
  TimeNs dwell_ns() const { return dwell_ns_; }
  void apply(std::span<const KnobValue> values) override;
  // Returns to the knobs' initial values.
  void reset() { apply(initial_values(kSprayKnobs)); }

 private:
  uint16_t range_;
  TimeNs dwell_ns_;
};

// Position of one queue pair in its range of ports.
class Spray {
 public:
  // Offset from the flow's own port for a packet that leaves now.
  uint16_t next_offset(const SpraySettings& settings, TimeNs now) {
    if (now - moved_at_ >= settings.dwell_ns()) {
      ++offset_;
      moved_at_ = now;
    }
    if (offset_ >= settings.range()) offset_ = 0;
    return offset_;
  }

 private:
  uint16_t offset_ = 0;
  TimeNs moved_at_ = 0;
};

}  // namespace rocefs
