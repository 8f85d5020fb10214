// Knobs of DCQCN on a port, where vendors' scripts expect them (class/net/<netdev>/ecn):
// notification point (NP) and reaction point (RP). Names and units are those of mlx5; initial
// values are the paper's (Zhu et al., SIGCOMM 2015).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/base/time.h"
#include "core/tree/knob.h"

namespace rocefs {

struct NpParameters {
  uint8_t priorities = 0;  // a bit for each priority on which marks are answered
  TimeNs gap = 0;          // minimum between two CNPs of a queue pair
  TimeNs processing_delay = 0;
  uint8_t dscp = 0;  // of CNPs
  uint8_t cnp_priority = 0;
};

struct RpParameters {
  uint8_t priorities = 0;    // a bit for each priority on which queue pairs react
  TimeNs timer = 0;          // T
  uint64_t byte_reset = 0;   // B; 0: no byte counter
  uint32_t threshold = 0;    // F
  double ai_bps = 0;         // RAI
  double hai_bps = 0;        // RHAI
  double divisor = 0;        // a cut takes alpha / divisor of the rate
  double g = 0;              // gain of alpha
  TimeNs alpha_period = 0;   // K
  TimeNs reduction_gap = 0;  // minimum between two cuts
  double initial_alpha = 0;
  double least_cut = 0;  // a cut leaves at least this share of the rate
  double min_bps = 0;
  double max_bps = 0;        // 0: the link's
  double first_bps = 0;      // rate after the first CNP; 0: an ordinary cut
  bool clamp = false;        // each cut lowers the target rate to the current one
  bool clamp_timed = false;  // or at least one after an increase by the timer does
};

inline constexpr std::string_view kNpEnableDoc =
    "marked packets of this priority (the DSCP's upper three bits) are answered by CNPs";
inline constexpr std::string_view kRpEnableDoc =
    "queue pairs of this priority (the DSCP's upper three bits) obey CNPs by DCQCN's rates, unless "
    "PCC or CFR acts; their data is sent as ECT(0)";
inline constexpr KnobRow kEcnKnobs[] = {
    {"roce_np/enable/0", KnobType::kBool, 0, 1, "1", "", "", kNpEnableDoc},
    {"roce_np/enable/1", KnobType::kBool, 0, 1, "1", "", "", kNpEnableDoc},
    {"roce_np/enable/2", KnobType::kBool, 0, 1, "1", "", "", kNpEnableDoc},
    {"roce_np/enable/3", KnobType::kBool, 0, 1, "1", "", "", kNpEnableDoc},
    {"roce_np/enable/4", KnobType::kBool, 0, 1, "1", "", "", kNpEnableDoc},
    {"roce_np/enable/5", KnobType::kBool, 0, 1, "1", "", "", kNpEnableDoc},
    {"roce_np/enable/6", KnobType::kBool, 0, 1, "1", "", "", kNpEnableDoc},
    {"roce_np/enable/7", KnobType::kBool, 0, 1, "1", "", "", kNpEnableDoc},
    {"roce_np/min_time_between_cnps", KnobType::kUint, 0, 4095, "50", "", "us",
     "N: minimum time between two CNPs of a queue pair, for any cause; less than "
     "roce_rp/dce_tcp_rtt"},
    {"roce_np/cnp_dscp", KnobType::kUint, 0, 63, "48", "", "",
     "DSCP of CNPs, by which switches queue them"},
    {"roce_np/cnp_802p_prio", KnobType::kUint, 0, 7, "6", "", "",
     "priority of CNPs in this port: a PAUSE of it stops them. Links carry no VLAN tag with it"},
    {"roce_np/processing_delay", KnobType::kDuration, 0, 10'000'000, "0", "", "s",
     "delay from a marked packet to its CNP; a queue pair has one pending CNP at most"},
    {"roce_rp/enable/0", KnobType::kBool, 0, 1, "0", "", "", kRpEnableDoc},
    {"roce_rp/enable/1", KnobType::kBool, 0, 1, "0", "", "", kRpEnableDoc},
    {"roce_rp/enable/2", KnobType::kBool, 0, 1, "0", "", "", kRpEnableDoc},
    {"roce_rp/enable/3", KnobType::kBool, 0, 1, "0", "", "", kRpEnableDoc},
    {"roce_rp/enable/4", KnobType::kBool, 0, 1, "0", "", "", kRpEnableDoc},
    {"roce_rp/enable/5", KnobType::kBool, 0, 1, "0", "", "", kRpEnableDoc},
    {"roce_rp/enable/6", KnobType::kBool, 0, 1, "0", "", "", kRpEnableDoc},
    {"roce_rp/enable/7", KnobType::kBool, 0, 1, "0", "", "", kRpEnableDoc},
    {"roce_rp/clamp_tgt_rate", KnobType::kBool, 0, 1, "1", "", "",
     "1: each cut sets the target rate to the rate before it; 0: only the first cut after an "
     "increase"},
    {"roce_rp/clamp_tgt_rate_after_time_inc", KnobType::kBool, 0, 1, "1", "", "",
     "with clamp_tgt_rate 0: an increase by the timer counts, too, not only one by the byte "
     "counter"},
    {"roce_rp/rpg_time_reset", KnobType::kUint, 1, 131071, "55", "", "us",
     "T: time without a cut after which the rate rises"},
    {"roce_rp/rpg_byte_reset", KnobType::kUint, 0, 4294967295, "10000000", "", "byte",
     "B: octets sent without a cut after which the rate rises; 0: only time counts"},
    {"roce_rp/rpg_threshold", KnobType::kUint, 0, 31, "5", "", "",
     "F: number of increases by timer or byte counter that halve the distance to the target rate "
     "(fast recovery)"},
    {"roce_rp/rpg_max_rate", KnobType::kUint, 0, 10'000'000, "0", "", "Mbit/s",
     "rate from which a queue pair is not limited; 0: the link's rate"},
    {"roce_rp/rpg_ai_rate", KnobType::kUint, 1, 1'000'000, "40", "", "Mbit/s",
     "RAI: additive increase of the target rate"},
    {"roce_rp/rpg_hai_rate", KnobType::kUint, 1, 1'000'000, "400", "", "Mbit/s",
     "RHAI: hyper increase of the target rate, once timer and byte counter are both past "
     "rpg_threshold"},
    {"roce_rp/rpg_gd", KnobType::kUint, 0, 15, "1", "", "log2",
     "a cut takes alpha / 2^rpg_gd of the rate"},
    {"roce_rp/rpg_min_dec_fac", KnobType::kUint, 1, 100, "50", "", "%",
     "a cut leaves at least this share of the rate"},
    {"roce_rp/rpg_min_rate", KnobType::kUint, 1, 10'000'000, "1", "", "Mbit/s",
     "minimum rate after a cut; at most rpg_max_rate"},
    {"roce_rp/rate_to_set_on_first_cnp", KnobType::kUint, 0, 10'000'000, "0", "", "Mbit/s",
     "rate after the first CNP of an unlimited queue pair; 0: an ordinary cut"},
    {"roce_rp/dce_tcp_g", KnobType::kUint, 1, 1023, "4", "", "1/1024",
     "g: weight of the latest feedback in alpha"},
    {"roce_rp/dce_tcp_rtt", KnobType::kUint, 1, 131071, "55", "", "us",
     "K: time without a CNP after which alpha decays; more than roce_np/min_time_between_cnps"},
    {"roce_rp/rate_reduce_monitor_period", KnobType::kUint, 0, 131071, "0", "", "us",
     "minimum time between two cuts: an earlier CNP only raises alpha"},
    {"roce_rp/initial_alpha_value", KnobType::kUint, 0, 1024, "1024", "", "1/1024",
     "alpha of a queue pair before its first CNP"},
};

class EcnKnobs final : public KnobOwner {
 public:
  EcnKnobs() { reset(); }
  const NpParameters& np() const { return np_; }
  const RpParameters& rp() const { return rp_; }
  // Restores initial values.
  void reset();
  // `changed` is called when the set of reacting priorities changes.
  void on_priorities(std::function<void()> changed) { changed_ = std::move(changed); }

  // In the order of kEcnKnobs.
  Result<void> check(std::span<const KnobValue> proposed) const override;
  void apply(std::span<const KnobValue> values) override;

 private:
  NpParameters np_;
  RpParameters rp_;
  std::function<void()> changed_;
};

}  // namespace rocefs
