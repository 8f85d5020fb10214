#include "rdma/transport/spray.h"

namespace rocefs {

void SpraySettings::apply(std::span<const KnobValue> values) {
  constexpr TimeNs kDwell[] = {0,
                               10 * kMicrosecond,
                               20 * kMicrosecond,
                               50 * kMicrosecond,
                               100 * kMicrosecond,
                               200 * kMicrosecond};
  auto number = [&](size_t index) { return std::get<uint64_t>(values[index]); };
  bool enabled = number(knob_index(kSprayKnobs, "ops/enable")) != 0;
  uint64_t range = number(knob_index(kSprayKnobs, "ops/udp_port_range"));
  range_ = enabled ? static_cast<uint16_t>(range) : 1;
  dwell_ns_ = kDwell[number(knob_index(kSprayKnobs, "ops/ops_timer"))];
}

}  // namespace rocefs
