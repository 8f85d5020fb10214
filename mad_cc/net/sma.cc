#include "mad_cc/net/sma.h"

#include <algorithm>
#include <array>
#include <span>

#include "mad_cc/mad/answer.h"
#include "mad_cc/net/attributes.h"
#include "mad_cc/net/routes.h"

namespace rocefs {
namespace {

constexpr uint8_t kSmpVersion = 1;
constexpr size_t kSmpData = 64, kSmpDataSize = 64;  // 14.2.1.1: both kinds of SMPs have it there

template <size_t N>
uint16_t give(const std::array<uint8_t, N>& attribute, uint8_t* data) {
  static_assert(N <= kSmpDataSize);
  std::copy(attribute.begin(), attribute.end(), data);
  return mad::kOk;
}

}  // namespace

std::optional<mad::Mad> SubnetAgent::answer(Subnet::End at, const mad::Mad& request) const {
  if (mad::expects_nothing(request)) return std::nullopt;
  uint16_t status = mad::check_header(request, kSmpVersion);
  if (status != mad::kOk) return mad::answer_to(request, status);
  mad::Mad answer = mad::answer_to(request, status);
  std::array<uint8_t, kSmpDataSize> data{};
  uint16_t attribute = request.attribute();
  uint32_t modifier = request.attribute_modifier();
  if (request.method() == mad::kSet) {
    Octets wanted;
    std::copy_n(&request.bytes[kSmpData], wanted.size(), wanted.begin());
    status = set(at, attribute, modifier, wanted);
  }
  if (status == mad::kOk) status = get(at, attribute, modifier, data.data());
  answer.set_status(status);
  if (status == mad::kOk) std::copy(data.begin(), data.end(), &answer.bytes[kSmpData]);
  return answer;
}

uint16_t SubnetAgent::get(Subnet::End at, uint16_t attribute, uint32_t modifier,
                          uint8_t* data) const {
  bool is_switch = subnet_.nodes[at.node].is_switch;
  using enum mad::SmpAttribute;
  switch (attribute) {
    case kNodeDescription:
      return give(mad::node_description(state_, at.node), data);
    case kNodeInfo:
      return give(mad::node_info(subnet_, at), data);
    case kSwitchInfo:
      if (!is_switch) break;
      return give(mad::switch_info(subnet_, state_, at.node), data);
    case kGuidInfo: {
      constexpr uint32_t kBlockSize = 8;
      if (modifier >= mad::kGuidCapacity / kBlockSize) return mad::kBadValue;
      return give(mad::guid_info(subnet_, at, modifier), data);
    }
    case kPortInfo:
      return get_port_info(at, modifier, data);
    case kPKeyTable:
      return get_pkeys(at, modifier, data);
    case kSlToVlTable:
      return get_sl_to_vl(at, modifier, data);
    case kLinearTable:
      if (!is_switch) break;
      return get_linear_table(at.node, modifier, data);
    case kMulticastTable:
      if (!is_switch) break;
      return get_multicast_table(at.node, modifier, data);
    case kSmInfo:
      if (at.node != subnet_.manager.node) break;
      return give(mad::sm_info(subnet_, state_), data);
    default:
      break;
  }
  return mad::kBadMethodAttribute;
}

// PortInfo (14.2.5.6): the modifier is the port; 0 is a switch's port 0, or the port of a channel
// adapter at which the SMP arrived. Its highest bit says that the manager knows extended speeds.
uint16_t SubnetAgent::get_port_info(Subnet::End at, uint32_t modifier, uint8_t* data) const {
  constexpr size_t kLocalPort = 28;  // octet
  const SubnetNode& node = subnet_.nodes[at.node];
  uint32_t port = modifier & 0x7fffffff;
  if (port > node.port_count()) return mad::kBadValue;
  if (port == 0 && !node.is_switch) port = at.port;
  uint16_t status =
      give(mad::port_info(subnet_, state_, {at.node, static_cast<uint8_t>(port)}), data);
  data[kLocalPort] = at.port;  // whichever port is asked about
  return status;
}

// P_KeyTable (14.2.5.7): a port of a switch and a block of 32. Only the default partition exists;
// switches' outer ports enforce none and have no table.
uint16_t SubnetAgent::get_pkeys(Subnet::End at, uint32_t modifier, uint8_t* data) const {
  uint32_t port = modifier >> 16, block = modifier & 0xffff;
  if (block != 0 || (subnet_.nodes[at.node].is_switch && port != 0)) return mad::kBadValue;
  wire::store16(data, mad::kDefaultPartition);
  return mad::kOk;
}

// SLtoVLMappingTable (14.2.5.8): a switch's input and output port. A channel adapter looks at
// neither.
uint16_t SubnetAgent::get_sl_to_vl(Subnet::End at, uint32_t modifier, uint8_t* data) const {
  const SubnetNode& node = subnet_.nodes[at.node];
  uint8_t in = modifier >> 8 & 0xff, out = modifier & 0xff;
  if (!node.is_switch) return give(mad::sl_to_vl(state_, at, 0), data);
  if (std::max(in, out) > node.port_count()) return mad::kBadValue;
  return give(mad::sl_to_vl(state_, {at.node, out}, in), data);
}

// LinearForwardingTable (14.2.5.10): a block of 64 LIDs.
uint16_t SubnetAgent::get_linear_table(size_t node, uint32_t block, uint8_t* data) const {
  if (block >= mad::kLinearTableSize / kSmpDataSize) return mad::kBadValue;
  return give(Routes(subnet_, state_).linear_block(node, block), data);
}

std::optional<uint8_t> SubnetAgent::written_forward(size_t switch_node, uint16_t lid) const {
  const Octets* block =
      state_.settings.find(switch_node, mad::kLinearTable, lid / uint32_t{kSmpDataSize});
  return block ? std::optional((*block)[lid % kSmpDataSize]) : std::nullopt;
}

// MulticastForwardingTable (14.2.5.12): a block of 32 groups in the low octets of the modifier, and
// in its highest bits which 16 ports the masks are of. Empty until a manager writes it.
uint16_t SubnetAgent::get_multicast_table(size_t node, uint32_t modifier, uint8_t* data) const {
  constexpr uint32_t kBlockSize = 32, kPortsOfMask = 16;
  uint32_t block = modifier & 0x1ff, position = modifier >> 28;
  if (block >= mad::kMulticastTableSize / kBlockSize) return mad::kBadValue;
  if (position * kPortsOfMask > subnet_.nodes[node].port_count()) return mad::kBadValue;
  const Octets* written = state_.settings.find(node, mad::kMulticastTable, position << 28 | block);
  return written ? give(*written, data) : uint16_t{mad::kOk};
}

}  // namespace rocefs
