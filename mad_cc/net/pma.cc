#include "mad_cc/net/pma.h"

#include <algorithm>
#include <array>
#include <span>

#include "mad_cc/mad/answer.h"
#include "mad_cc/net/attributes.h"

namespace rocefs {
namespace {

// Attributes (16.1.3, table 236).
enum Attribute : uint16_t {
  kClassPortInfo = 0x01,
  kPortCounters = 0x12,
  kPortCountersExtended = 0x1d,
};

// CapabilityMask of ClassPortInfo (16.1.3.1).
enum Capability : uint16_t {
  kAllPortSelect = 1u << 8,
  kExtendedWidth = 1u << 9,
  kXmitWait = 1u << 12,
};

constexpr uint8_t kPerfVersion = 1;
constexpr size_t kData = 64, kDataSize = 192;  // 16.1.1
constexpr uint8_t kAllPorts = 255;

// Place of a counter in an attribute: bits from its beginning, and width. The index in the table is
// the bit of CounterSelect.
struct Field {
  uint16_t offset, width;
  uint64_t PerfCounters::*member;
};

// PortCounters (16.1.3.5). The bit of the last one is the lowest of CounterSelect2.
constexpr Field kNarrow[] = {{32, 16, &PerfCounters::symbol_errors},
                             {48, 8, &PerfCounters::link_recoveries},
                             {56, 8, &PerfCounters::link_downed},
                             {64, 16, &PerfCounters::rcv_errors},
                             {80, 16, &PerfCounters::rcv_remote_physical_errors},
                             {96, 16, &PerfCounters::rcv_switch_relay_errors},
                             {112, 16, &PerfCounters::xmit_discards},
                             {128, 8, &PerfCounters::xmit_constraint_errors},
                             {136, 8, &PerfCounters::rcv_constraint_errors},
                             {152, 4, &PerfCounters::local_link_integrity},
                             {156, 4, &PerfCounters::buffer_overruns},
                             {176, 16, &PerfCounters::vl15_dropped},
                             {192, 32, &PerfCounters::xmit_data},
                             {224, 32, &PerfCounters::rcv_data},
                             {256, 32, &PerfCounters::xmit_packets},
                             {288, 32, &PerfCounters::rcv_packets},
                             {320, 32, &PerfCounters::xmit_wait}};
constexpr size_t kCounterSelect2 = 18;  // octet

// PortCountersExtended (16.1.4.11).
constexpr Field kWide[] = {
    {64, 64, &PerfCounters::xmit_data},       {128, 64, &PerfCounters::rcv_data},
    {192, 64, &PerfCounters::xmit_packets},   {256, 64, &PerfCounters::rcv_packets},
    {320, 64, &PerfCounters::unicast_xmit},   {384, 64, &PerfCounters::unicast_rcv},
    {448, 64, &PerfCounters::multicast_xmit}, {512, 64, &PerfCounters::multicast_rcv}};

std::span<const Field> fields_of(bool extended) {
  return extended ? std::span<const Field>(kWide) : std::span<const Field>(kNarrow);
}

// Stores a counter, which stays at its maximum (16.1.3.5).
void store(const Field& field, uint64_t value, uint8_t* data) {
  value = std::min(value, UINT64_MAX >> (64 - field.width));
  uint8_t* last = data + (field.offset + field.width - 1) / 8;
  if (field.width == 4) {  // half an octet, the other half of which another field has
    unsigned shift = field.offset % 8 == 0 ? 4 : 0;
    *last = static_cast<uint8_t>((*last & ~(0xfu << shift)) | value << shift);
    return;
  }
  for (unsigned done = 0; done < field.width; done += 8, value >>= 8) {
    *last-- = static_cast<uint8_t>(value);
  }
}

void store_class_port_info(uint8_t* data) {
  std::fill_n(data, kDataSize, uint8_t{0});
  data[0] = data[1] = kPerfVersion;
  wire::store16(data + 2, kAllPortSelect | kExtendedWidth | kXmitWait);
  data[7] = mad::kLifetimeCode;  // RespTimeValue
}

}  // namespace

std::optional<mad::Mad> PerformanceAgent::answer(Subnet::End at, const mad::Mad& request) const {
  if (mad::expects_nothing(request)) return std::nullopt;
  uint16_t status = mad::check_header(request, kPerfVersion);
  mad::Mad answer = mad::answer_to(request, status);
  if (status != mad::kOk) return answer;
  bool set = request.method() == mad::kSet;
  uint16_t attribute = request.attribute();
  uint8_t* data = &answer.bytes[kData];
  if (attribute == kClassPortInfo && !set) {
    store_class_port_info(data);
  } else if (attribute == kPortCounters || attribute == kPortCountersExtended) {
    status = access(at.node, attribute == kPortCountersExtended, set, data);
  } else {
    status = mad::kBadMethodAttribute;
  }
  answer.set_status(status);
  return answer;
}

uint16_t PerformanceAgent::access(size_t node, bool extended, bool set, uint8_t* data) const {
  uint8_t first = data[1], last = data[1];
  uint8_t ports = subnet_.nodes[node].port_count();
  if (first == kAllPorts) {
    first = 1;
    last = ports;
  }
  if (first == 0 || last > ports) return mad::kBadValue;
  std::span<const Field> fields = fields_of(extended);
  uint32_t selected = wire::load16(data + 2);
  if (!extended) selected |= (data[kCounterSelect2] & 1u) << 16;
  PerfCounters which;
  for (size_t i = 0; i < fields.size(); ++i) which.*fields[i].member = selected >> i & 1;
  std::fill(data + (extended ? 8 : 4), data + kDataSize, uint8_t{0});
  if (!extended) data[kCounterSelect2] = static_cast<uint8_t>(selected >> 16);
  std::array<uint64_t, std::max(std::size(kNarrow), std::size(kWide))> sums{};
  for (unsigned port = first; port <= last; ++port) {
    if (set) state_.clear_counters(node, static_cast<uint8_t>(port), which);
    PerfCounters counters = state_.counters(node, static_cast<uint8_t>(port));
    for (size_t i = 0; i < fields.size(); ++i) {
      sums[i] += std::min(counters.*fields[i].member, UINT64_MAX - sums[i]);
    }
  }
  for (size_t i = 0; i < fields.size(); ++i) store(fields[i], sums[i], data);
  return mad::kOk;
}

}  // namespace rocefs
