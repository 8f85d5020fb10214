#include "mad_cc/net/attributes.h"

#include <algorithm>

#include "rdma/wire/bytes.h"

namespace rocefs::mad {
namespace {

using wire::store16;
using wire::store32;
using wire::store64;

bool is_management_port(const Subnet& subnet, Subnet::End at) {
  return subnet.nodes[at.node].is_switch && at.port == 0;
}

// CapabilityMask and CapabilityMask2 (14.2.5.6).
enum Capabilities : uint32_t {
  kIsSm = 1u << 1,
  kHasSystemImageGuid = 1u << 11,
  kHasExtendedSpeeds = 1u << 14,
  kHasCapabilityMask2 = 1u << 15,
  kHasCm = 1u << 16,
};
enum Capabilities2 : uint16_t {
  kHasHdr = 1u << 5,
  kHasNdr = 1u << 10,
  kHasExtendedSpeeds2 = 1u << 11,
  kHasXdr = 1u << 12,
};

enum : uint8_t { kDown = 1, kActive = 4, kPolling = 2, kDisabled = 3, kLinkUp = 5 };

// Values of all nodes, as in the files of a device. The vendor is the OUI of the GUIDs.
constexpr uint16_t kDeviceId = 0x4d42;
constexpr uint32_t kRevision = 1;
constexpr uint32_t kVendorOui = 0x02004c;

// Returns the bits of the speed and of all slower ones.
constexpr uint8_t up_to(unsigned bit) {
  return static_cast<uint8_t>(2 * bit - 1);
}

// Speed fields of PortInfo. The extended field begins with FDR; faster links show QDR in the first
// field. XDR came after the second field was full: readers that know no third see NDR.
struct SpeedFields {
  uint8_t speed, supported;
  uint8_t extended = 0, extended_supported = 0;
  uint8_t extended2 = 0;

  explicit SpeedFields(const PortSpeed& port) {
    bool is_extended = port.speed >= 16;
    speed = static_cast<uint8_t>(is_extended ? 4 : port.speed);
    supported = up_to(speed);
    if (!is_extended) return;
    extended = static_cast<uint8_t>(std::min(port.speed / 16, 8));
    extended_supported = up_to(extended);
    extended2 = port.speed > 128;
  }
};

struct RateCode {
  uint64_t mbps;
  uint8_t code;
};
// Rates (15.2.5.16) that links have or clients may ask for.
constexpr RateCode kRateCodes[] = {
    {2'500, 2},    {5'000, 5},    {10'000, 3},   {14'000, 11},  {20'000, 6},     {25'000, 15},
    {28'000, 19},  {30'000, 4},   {40'000, 7},   {50'000, 20},  {56'000, 12},    {60'000, 8},
    {80'000, 9},   {100'000, 16}, {112'000, 13}, {120'000, 10}, {168'000, 14},   {200'000, 17},
    {300'000, 18}, {400'000, 21}, {600'000, 22}, {800'000, 23}, {1'200'000, 24},
};

void store_link(PortInfo& info, const PortSpeed& rate, bool up) {
  SpeedFields fields(rate);
  info[29] = info[30] = up_to(rate.width);
  info[31] = rate.width;
  info[32] = static_cast<uint8_t>(fields.supported << 4 | (up ? kActive : kDown));
  info[33] = static_cast<uint8_t>((up ? kLinkUp : kDisabled) << 4 | kPolling);
  info[35] = static_cast<uint8_t>(fields.speed << 4 | fields.supported);
  info[56] = static_cast<uint8_t>(fields.extended2 << 5 | fields.extended2 << 3 | fields.extended2);
  info[62] = static_cast<uint8_t>(fields.extended << 4 | fields.extended_supported);
  info[63] = fields.extended_supported;
}

// Bits of PortInfo that a manager writes, but for those below. Address and management fields are
// not those of a switch's outer ports.
struct WritableBits {
  uint8_t octet, mask;
  bool of_ends;
};
constexpr WritableBits kWritableBits[] = {
    {18, 0xff, true},   // MasterSMLID
    {19, 0xff, true},   //
    {26, 0xff, true},   // M_KeyLeasePeriod
    {27, 0xff, true},   //
    {33, 0x0f, false},  // LinkDownDefaultState
    {36, 0xf0, false},  // NeighborMTU
    {36, 0x0f, true},   // MasterSMSL
    {38, 0xff, false},  // VLHighLimit
    {42, 0xff, false},  // VLStallCount, HOQLife
    {43, 0x0f, false},  // enforcement of partitions, raw filters
    {51, 0x7f, true},   // MulticastPKeyTrapSuppression, SubnetTimeOut
    {53, 0xff, false},  // LocalPhyErrors, OverrunErrors
};

// Enabled widths and speeds; those that the cable does not have (any more) do not count.
constexpr uint8_t enabled(uint8_t written, uint8_t supported) {
  return (written & supported) != 0 ? written & supported : supported;
}

void overlay_written(PortInfo& info, const SubnetSettings::Octets& written, bool is_end) {
  for (const WritableBits& bits : kWritableBits) {
    if (bits.of_ends && !is_end) continue;
    uint8_t& octet = info[bits.octet];
    octet = static_cast<uint8_t>((octet & ~bits.mask) | (written[bits.octet] & bits.mask));
  }
  constexpr uint8_t kExtendedDisabled = 30;
  info[29] = enabled(written[29], info[30]);
  uint8_t speeds = enabled(written[35] & 0x0f, info[32] >> 4);
  info[35] = static_cast<uint8_t>((info[35] & 0xf0) | speeds);
  uint8_t extended = written[63] & 0x1f;
  info[63] = extended == kExtendedDisabled ? 0 : enabled(extended, info[62] & 0x0f);
}

}  // namespace

NodeInfo node_info(const Subnet& subnet, Subnet::End at) {
  const SubnetNode& node = subnet.nodes[at.node];
  NodeInfo info{};
  info[0] = info[1] = 1;  // BaseVersion, ClassVersion
  info[2] = node.is_switch ? 2 : 1;
  info[3] = node.port_count();
  store64(&info[4], node.guid);  // SystemImageGUID
  store64(&info[12], node.guid);
  store64(&info[20], node.ports[node.is_switch ? 0 : at.port].guid);
  store16(&info[28], 1);  // PartitionCap: the default partition
  store16(&info[30], kDeviceId);
  store32(&info[32], kRevision);
  store32(&info[36], uint32_t{at.port} << 24 | kVendorOui);
  return info;
}

NodeDescription node_description(const SubnetState& state, size_t node) {
  NodeDescription description{};
  std::string text = state.description(node);
  std::copy_n(text.begin(), std::min(text.size(), description.size()), description.begin());
  return description;
}

PortInfo port_info(const Subnet& subnet, const SubnetState& state, Subnet::End at) {
  const SubnetNode& node = subnet.nodes[at.node];
  const SubnetPort& port = subnet.at(at);
  PortInfo info{};
  // Address and management state belong to port 0 of a switch, not to its other ports.
  if (!node.is_switch || at.port == 0) {
    store64(&info[8], kSubnetPrefix);
    store16(&info[16], port.lid);
    store16(&info[18], port.member || at.port == 0 ? subnet.manager_lid() : 0);
    info[50] = kGuidCapacity;
  }
  uint32_t capabilities = kHasSystemImageGuid | kHasExtendedSpeeds | kHasCapabilityMask2;
  if (!node.is_switch) capabilities |= kHasCm;
  if (state.settings.is_manager(at.node, at.port)) capabilities |= kIsSm;
  if (at == subnet.manager && state.settings.emulated_manager()) capabilities |= kIsSm;
  store32(&info[kPortInfoCapabilities], capabilities);
  info[28] = at.port;
  bool up = is_management_port(subnet, at) || state.up(at.node, at.port);
  store_link(info, port_speed(rate_bps(subnet, state, at)), up);
  uint16_t mtu = port.mtu;
  if (port.peer != SubnetPort::kNoPeer)
    mtu = std::min(mtu, subnet.nodes[port.peer].ports[port.peer_port].mtu);
  info[36] = static_cast<uint8_t>(mtu_code(mtu) << 4);
  info[37] = 1 << 4;  // VLCap: VL 0
  info[41] = mtu_code(port.mtu);
  info[43] = 1 << 4;  // OperationalVLs
  info[51] = info[52] = kLifetimeCode;
  info[53] = 8 << 4 | 8;  // LocalPhyErrors, OverrunErrors
  store16(&info[60], kHasHdr | kHasNdr | kHasExtendedSpeeds2 | kHasXdr);
  if (const auto* written = state.settings.find(at.node, kPortInfo, at.port))
    overlay_written(info, *written, !node.is_switch || at.port == 0);
  return info;
}

SubnetSettings::States port_states(const SubnetState& state, const SubnetNode& node, size_t index) {
  SubnetSettings::States states(node.ports.size());
  for (size_t port = 0; port < states.size(); ++port) {
    states[port] = state.up(index, static_cast<uint8_t>(port));
  }
  return states;
}

SwitchInfo switch_info(const Subnet& subnet, const SubnetState& state, size_t node) {
  constexpr uint8_t kPortStateChange = 1 << 2;
  SwitchInfo info{};
  store16(&info[0], kLinearTableSize);
  store16(&info[4], kMulticastTableSize);
  store16(&info[6], static_cast<uint16_t>(subnet.by_lid.size()));  // LinearFDBTop
  info[9] = info[10] = 255;  // no port for multicast that no table names
  info[11] = kLifetimeCode << 3;
  if (const auto* written = state.settings.find(node, kSwitchInfo, 0)) {
    std::copy_n(&(*written)[6], 5, &info[6]);  // LinearFDBTop, default ports
    info[11] = (*written)[11] & static_cast<uint8_t>(~kPortStateChange);
    std::copy_n(&(*written)[18], 2, &info[18]);  // MulticastFDBTop
  }
  const SubnetSettings::States* seen = state.settings.seen(node);
  if (seen && *seen != port_states(state, subnet.nodes[node], node)) info[11] |= kPortStateChange;
  return info;
}

SlToVl sl_to_vl(const SubnetState& state, Subnet::End at, uint8_t input) {
  SlToVl map{};
  const auto* written = state.settings.find(at.node, kSlToVlTable, uint32_t{input} << 8 | at.port);
  if (written) std::copy_n(written->begin(), map.size(), map.begin());
  return map;
}

GuidInfo guid_info(const Subnet& subnet, Subnet::End at, uint32_t block) {
  GuidInfo info{};
  const SubnetNode& node = subnet.nodes[at.node];
  if (block == 0) store64(&info[0], node.ports[node.is_switch ? 0 : at.port].guid);
  return info;
}

SmInfo sm_info(const Subnet& subnet, const SubnetState& state) {
  constexpr uint8_t kNotActive = 0, kMaster = 3;
  SmInfo info{};
  store64(&info[0], subnet.at(subnet.manager).guid);
  store32(&info[16], 1);  // ActCount: it has looked at the subnet
  info[20] = state.settings.emulated_manager() ? kMaster : kNotActive;  // priority 0
  return info;
}

uint8_t mtu_code(uint16_t mtu) {
  uint8_t code = 1;
  while (code < 5 && mtu >= 512u << (code - 1)) ++code;
  return code;
}

uint8_t rate_code(uint64_t bps) {
  uint64_t mbps = port_speed(bps).mbps;
  for (const RateCode& rate : kRateCodes) {
    if (rate.mbps >= mbps) return rate.code;
  }
  return std::end(kRateCodes)[-1].code;
}

uint64_t rate_mbps(uint8_t code) {
  for (const RateCode& rate : kRateCodes) {
    if (rate.code == code) return rate.mbps;
  }
  return 0;
}

uint64_t rate_bps(const Subnet& subnet, const SubnetState& state, Subnet::End at) {
  return is_management_port(subnet, at) ? kManagementPortBps : state.rate_bps(at.node, at.port);
}

}  // namespace rocefs::mad
