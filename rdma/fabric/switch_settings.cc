#include "rdma/fabric/switch_settings.h"

#include <algorithm>
#include <cerrno>
#include <cmath>

namespace rocefs {

SwitchSettings SwitchSettings::of(std::span<const KnobValue> values) {
  auto number = [&](size_t index) { return std::get<uint64_t>(values[index]); };
  SwitchSettings to;
  to.ecn.enable = number(knob_index(kSwitchKnobs, "ecn/enable")) != 0;
  to.ecn.kmin = number(knob_index(kSwitchKnobs, "ecn/kmin"));
  to.ecn.kmax = number(knob_index(kSwitchKnobs, "ecn/kmax"));
  to.ecn.pmax = std::get<double>(values[knob_index(kSwitchKnobs, "ecn/pmax")]);
  to.ecn.at_dequeue = number(knob_index(kSwitchKnobs, "ecn/mark_at")) == 1;
  to.pfc.enable = number(knob_index(kSwitchKnobs, "pfc/enable")) != 0;
  to.telemetry = number(knob_index(kSwitchKnobs, "int/enable")) != 0;
  to.pfc.dynamic = number(knob_index(kSwitchKnobs, "pfc/mode")) == 1;
  to.pfc.threshold = number(knob_index(kSwitchKnobs, "pfc/threshold"));
  to.pfc.beta = number(knob_index(kSwitchKnobs, "pfc/beta"));
  to.pfc.headroom = number(knob_index(kSwitchKnobs, "pfc/headroom"));
  to.buffer = number(knob_index(kSwitchKnobs, "buffer/size"));
  return to;
}

SwitchSettings SwitchSettings::initial() {
  return of(rocefs::initial_values(kSwitchKnobs));
}

std::vector<KnobValue> SwitchSettings::initial_values(uint64_t buffer) {
  std::vector<KnobValue> values = rocefs::initial_values(kSwitchKnobs);
  values[knob_index(kSwitchKnobs, "buffer/size")] = buffer;
  return values;
}

// PAUSE waits for the packet in transmission, is transmitted and travels; until its effect travels
// back, the far end transmits at its rate, and then completes a packet. One more may be in flight
// when the threshold is passed.
uint64_t headroom_of(const LinkParameters& in, const LinkParameters& out, uint64_t options) {
  uint64_t packet = kMaxPacket + options;
  double waits = static_cast<double>(packet + kEthernetOverhead + kPauseOctets) * 8e9 /
                 static_cast<double>(out.rate_bps);
  double loop = waits + static_cast<double>(in.delay_ns) + static_cast<double>(out.delay_ns);
  double octets = std::ceil(loop * static_cast<double>(in.rate_bps) / 8e9);
  return static_cast<uint64_t>(octets) + 2 * packet;
}

BufferPlan::BufferPlan(const SwitchSettings& settings, uint64_t port_count, uint64_t reserved)
    : pfc(settings.pfc.enable),
      dynamic(settings.pfc.dynamic),
      ports(std::max<uint64_t>(port_count, 1)),
      beta(settings.pfc.beta),
      shared(settings.buffer - std::min(settings.buffer, reserved)),
      static_bound(shared / (kPriorities * ports)) {
  threshold =
      settings.pfc.threshold ? std::min(settings.pfc.threshold, static_bound) : static_bound;
}

// A port's priority may fill every egress queue of that priority; while none of these is above
// t_ECN, the switch holds at most 8 n t_ECN.
uint64_t BufferPlan::ecn_bound() const {
  if (!dynamic) return threshold / ports;
  return beta * shared / (kPriorities * ports * (beta + 1));
}

Result<void> check_settings(const SwitchSettings& settings, uint64_t ports, uint64_t reserved) {
  const EcnSettings& ecn = settings.ecn;
  const PfcSettings& pfc = settings.pfc;
  if (ecn.kmin > ecn.kmax) {
    return errorf(EINVAL, "ecn/kmin {} is above ecn/kmax {}", ecn.kmin, ecn.kmax);
  }
  if (pfc.headroom != 0) {
    uint64_t queues = kPriorities * ports;
    if (pfc.headroom > settings.buffer / std::max<uint64_t>(queues, 1)) {
      return errorf(EINVAL,
                    "pfc/headroom {} for {} ports of {} priorities is more than buffer/size {}",
                    pfc.headroom, ports, kPriorities, settings.buffer);
    }
    reserved = queues * pfc.headroom;
  }
  BufferPlan plan(settings, ports, reserved);
  if (pfc.threshold > plan.static_bound) {
    return errorf(EINVAL,
                  "pfc/threshold {} is above its bound {}: (buffer/size - 8 n headroom)/(8 n) with "
                  "{} ports",
                  pfc.threshold, plan.static_bound, ports);
  }
  return {};
}

}  // namespace rocefs
