// SubnSet: what a subnet manager may change (IBTA volume 1, 14.2.5).
#include <algorithm>

#include "mad_cc/net/attributes.h"
#include "mad_cc/net/sma.h"

namespace rocefs {
namespace {

enum PortState : uint8_t { kNoChange = 0, kPortDown = 1, kPortActive = 4 };
enum PhysicalState : uint8_t { kNoTransition = 0, kPhysPolling = 2, kPhysDisabled = 3 };

uint16_t field16(const SubnetSettings::Octets& octets, size_t at) {
  return wire::load16(&octets[at]);
}
uint8_t high(uint8_t octet) {
  return octet >> 4;
}
uint8_t low(uint8_t octet) {
  return octet & 0x0f;
}

// Replaces values that mean no change, or all that is supported (14.2.5.6), by those that they
// stand for.
void resolve(SubnetSettings::Octets& wanted, const SubnetSettings::Octets& now) {
  constexpr uint8_t kAllWidths = 255, kAllSpeeds = 15, kAllExtended = 31;
  if (wanted[29] == 0) wanted[29] = now[29];
  if (wanted[29] == kAllWidths) wanted[29] = now[30];
  uint8_t speeds = low(wanted[35]);
  if (speeds == 0) speeds = low(now[35]);
  if (speeds == kAllSpeeds) speeds = high(now[32]);
  wanted[35] = static_cast<uint8_t>((now[35] & 0xf0) | speeds);
  uint8_t extended = wanted[63] & 0x1f;
  if (extended == 0) extended = now[63] & 0x1f;
  if (extended == kAllExtended) extended = now[62] & 0x0f;
  wanted[63] = extended;
  if (low(wanted[33]) == 0) wanted[33] |= low(now[33]);
}

}  // namespace

uint16_t SubnetAgent::set(Subnet::End at, uint16_t attribute, uint32_t modifier,
                          const Octets& data) const {
  Octets now{};
  if (uint16_t status = get(at, attribute, modifier, now.data())) return status;
  using enum mad::SmpAttribute;
  switch (attribute) {
    case kPortInfo:
      return set_port_info(at, modifier, data);
    case kSwitchInfo:
      return set_switch_info(at.node, data);
    case kPKeyTable:
      return data == now ? mad::kOk : mad::kBadValue;
    case kSlToVlTable:
      modifier = subnet_.nodes[at.node].is_switch ? modifier & 0xffff : at.port;
      state_.settings.write(at.node, attribute, modifier, data);
      return mad::kOk;
    case kLinearTable:
      state_.settings.write(at.node, attribute, modifier, data);
      return mad::kOk;
    case kMulticastTable:
      state_.settings.write(at.node, attribute, modifier & 0xf00001ff, data);
      return mad::kOk;
    default:
      return mad::kBadMethodAttribute;
  }
}

uint16_t SubnetAgent::set_port_info(Subnet::End at, uint32_t modifier, const Octets& data) const {
  const SubnetNode& node = subnet_.nodes[at.node];
  auto number = static_cast<uint8_t>(modifier);
  if (number == 0 && !node.is_switch) number = at.port;
  Subnet::End end{at.node, number};
  mad::PortInfo now = mad::port_info(subnet_, state_, end);
  Octets wanted = data;
  if (!may_have(end, wanted, now)) return mad::kBadValue;
  resolve(wanted, now);
  state_.settings.write(end.node, mad::kPortInfo, end.port, wanted);
  if (!node.is_switch) state_.set_manager_lid(end.node, end.port, field16(wanted, 18));
  uint8_t physical = high(wanted[33]);
  const bool up = low(now[32]) == kPortActive, polls = physical == kPhysPolling;
  // A port that is up and shall poll, or go down, retrains.
  const bool retrains = up && (polls || low(wanted[32]) == kPortDown);
  const bool disables = physical == kPhysDisabled;
  if (disables || retrains) state_.set_enabled(end.node, end.port, false);
  if (!disables && (polls || retrains)) state_.set_enabled(end.node, end.port, true);
  return mad::kOk;
}

// Transitions (14.2.5.6): the emulator activates ports itself. Down retrains a port, which is then
// active again.
bool SubnetAgent::may_have(Subnet::End at, const Octets& wanted, const Octets& now) const {
  const SubnetNode& node = subnet_.nodes[at.node];
  constexpr size_t kMKey = 0, kMKeySize = 8, kPrefix = 8, kLid = 16, kManagerLid = 18;
  constexpr uint16_t kLastUnicast = 0xbfff;
  if (!node.is_switch || at.port == 0) {
    bool has_key =
        std::any_of(&wanted[kMKey], &wanted[kMKey] + kMKeySize, [](auto o) { return o; });
    bool mask_count = (wanted[34] & 7) != 0;
    bool same = std::equal(&now[kPrefix], &now[kPrefix] + 8, &wanted[kPrefix]) &&
                field16(now, kLid) == field16(wanted, kLid);
    if (has_key || mask_count || !same || field16(wanted, kManagerLid) > kLastUnicast) return false;
  }
  uint8_t state = low(wanted[32]), physical = high(wanted[33]);
  bool up = low(now[32]) == kPortActive;
  if (state != kNoChange && state != kPortDown && !(state == kPortActive && up)) return false;
  if (physical != kNoTransition && physical != kPhysPolling && physical != kPhysDisabled)
    return false;
  if (at.port == 0 && (state == kPortDown || physical != kNoTransition)) return false;
  uint8_t mtu = high(wanted[36]), mtu_capability = low(now[41]);
  if (mtu == 0 || mtu > mtu_capability) return false;
  return high(wanted[43]) <= high(now[37]);  // OperationalVLs, VLCap
}

// SwitchInfo (14.2.5.4). A 1 in PortStateChange clears it.
uint16_t SubnetAgent::set_switch_info(size_t node, const Octets& data) const {
  constexpr size_t kLinearTop = 6;
  constexpr uint8_t kPortStateChange = 1 << 2;
  if (field16(data, kLinearTop) >= mad::kLinearTableSize) return mad::kBadValue;
  state_.settings.write(node, mad::kSwitchInfo, 0, data);
  if ((data[11] & kPortStateChange) != 0 || !state_.settings.seen(node)) {
    state_.settings.set_seen(node, mad::port_states(state_, subnet_.nodes[node], node));
  }
  return mad::kOk;
}

}  // namespace rocefs
