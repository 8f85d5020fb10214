// LimiterSettings: the settings of a port's limiter of SA requests, and their knobs.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/tree/knob.h"

namespace rocefs {

// Differences:
//           limits are  maximum wait of a request                   a raised max_outstanding
//  kDoc     the port's  time_sa_mad                                 drains the queue at once
//  kOfed4   the port's  timeout * (retries + 1) - time_sa_mad       lets new requests overtake; of
//                                                                   the queue one goes per answer
//  kOfed25  an agent's  for ever                                    drains the queue at once
// kOfed4: a request expires at once when it is queued if nothing of its time-outs is left.
// kOfed25: time_sa_mad limits the wait for the answer (response_timeout_ms()); 0 leaves each
// request its own time-out. A max_outstanding of 0 is no limit.
enum class MadSemantics : uint8_t { kDoc, kOfed4, kOfed25 };
inline constexpr std::string_view kMadSemanticsWords = "doc ofed4 ofed25";  // as MadSemantics

inline constexpr KnobRow kLimiterKnobs[] = {
    {"max_outstanding", KnobType::kUint, 0, 1 << 20, "16", "", "",
     "SA requests (Get and Set of class SubnAdm) of this port that may be sent and not yet over; "
     "more wait. Under sa/semantics doc and ofed4 from 1 on; under ofed25 of each MAD agent, and 0 "
     "is no limit"},
    {"queue_size", KnobType::kUint, 16, 1 << 20, "16", "", "",
     "SA requests of this port (ofed25: of each MAD agent) that may wait; more are refused with "
     "EBUSY, and counted in drops. What waits already stays"},
    {"time_sa_mad", KnobType::kUint, 0, 10'000, "20", "", "ms",
     "doc: how long an SA request may wait, from 1 on; then its sender sees a time-out. ofed4: how "
     "much of its time-outs, retries included, remains when it has waited as long as it may. "
     "ofed25: what all its tries together wait for an answer, instead of its own time-outs; 0: "
     "those. Counts for requests that come after the store"},
    // Knob without a file: a copy of sa/semantics, so that one check() sees both.
    {"semantics", KnobType::kWord, 0, 0, "doc", kMadSemanticsWords, "", "as sa/semantics"},
};

struct LimiterSettings {
  MadSemantics semantics;
  uint64_t max_outstanding;  // 0: no limit
  uint64_t queue_size;
  uint64_t time_sa_mad_ms;
  bool operator==(const LimiterSettings&) const = default;

  // Reads values in the order of kLimiterKnobs.
  static LimiterSettings of(std::span<const KnobValue> values) {
    auto number = [&](size_t index) { return std::get<uint64_t>(values[index]); };
    return {static_cast<MadSemantics>(number(knob_index(kLimiterKnobs, "semantics"))),
            number(knob_index(kLimiterKnobs, "max_outstanding")),
            number(knob_index(kLimiterKnobs, "queue_size")),
            number(knob_index(kLimiterKnobs, "time_sa_mad"))};
  }
  // Returns the values in the order of kLimiterKnobs.
  std::vector<KnobValue> values() const {
    std::vector<KnobValue> values(std::size(kLimiterKnobs));
    values[knob_index(kLimiterKnobs, "max_outstanding")] = max_outstanding;
    values[knob_index(kLimiterKnobs, "queue_size")] = queue_size;
    values[knob_index(kLimiterKnobs, "time_sa_mad")] = time_sa_mad_ms;
    values[knob_index(kLimiterKnobs, "semantics")] = static_cast<uint64_t>(semantics);
    return values;
  }
};

}  // namespace rocefs
