#include "mad_cc/sa/sa_records.h"

#include <algorithm>
#include <span>
#include <vector>

#include "mad_cc/net/attributes.h"
#include "mad_cc/sa/sa_components.h"

namespace rocefs::sa {
namespace {

using wire::store16;
using wire::store32;

struct Candidate {
  Subnet::End at;
  uint16_t block = 0;
  uint16_t count = 1;  // of records: those of the blocks that follow
  size_t first = 0;    // record of all
};
using Candidates = std::vector<Candidate>;

// Listers of candidates: the objects of the subnet that have a record each.

void no_one(const Picture&, Candidates&) {}

void manager(const Picture& picture, Candidates& list) {
  list.push_back({picture.subnet.manager});
}

void ends(const Picture& picture, Candidates& list) {
  for (Subnet::End end : picture.subnet.by_lid) {
    if (picture.routes.reachable(end)) list.push_back({end});
  }
}

void switches(const Picture& picture, Candidates& list) {
  for (Subnet::End end : picture.subnet.by_lid) {
    if (picture.subnet.nodes[end.node].is_switch && picture.routes.reachable(end))
      list.push_back({end});
  }
}

void forwarding_blocks(const Picture& picture, Candidates& list) {
  Candidates all;
  switches(picture, all);
  for (const Candidate& one : all) {
    for (size_t block = 0; block <= picture.subnet.by_lid.size() / 64; ++block)
      list.push_back({one.at, static_cast<uint16_t>(block)});
  }
}

// Lists the blocks that a manager has written: without one there are no groups.
void multicast_blocks(const Picture& picture, Candidates& list) {
  constexpr uint16_t kBlocks = mad::kMulticastTableSize / 32, kPositions = 16;
  Candidates all;
  switches(picture, all);
  for (const Candidate& one : all) {
    for (uint16_t i = 0; i < kBlocks * kPositions; ++i) {
      uint16_t block = i / kPositions, position = i % kPositions;
      uint32_t modifier = uint32_t{position} << 28 | block;
      if (picture.state.settings.find(one.at.node, mad::kMulticastTable, modifier))
        list.push_back({one.at, static_cast<uint16_t>(position << 12 | block)});
    }
  }
}

// Lists every port of a switch, whatever its state, and the ends among a channel adapter's ports.
void ports(const Picture& picture, Candidates& list) {
  Candidates all;
  ends(picture, all);
  for (const Candidate& one : all) {
    const SubnetNode& node = picture.subnet.nodes[one.at.node];
    size_t count = node.is_switch ? node.ports.size() : 1;
    for (size_t i = 0; i < count; ++i)
      list.push_back({{one.at.node, static_cast<uint8_t>(one.at.port + i)}});
  }
}

// Lists output ports with all input ports; a channel adapter has one pair.
void mappings(const Picture& picture, Candidates& list) {
  Candidates all;
  ports(picture, all);
  for (const Candidate& one : all) {
    const SubnetNode& node = picture.subnet.nodes[one.at.node];
    auto inputs = static_cast<uint16_t>(node.is_switch ? node.ports.size() : 1);
    list.push_back({one.at, 0, inputs});
  }
}

void cables(const Picture& picture, Candidates& list) {
  Candidates all;
  ports(picture, all);
  for (const Candidate& one : all) {
    if (picture.routes.across(one.at)) list.push_back(one);
  }
}

// Writers of the records.

uint16_t lid_of(const Subnet& subnet, Subnet::End at) {
  return subnet.nodes[at.node].ports[subnet.nodes[at.node].is_switch ? 0 : at.port].lid;
}
template <size_t N>
void store(uint8_t* at, const std::array<uint8_t, N>& octets) {
  std::memcpy(at, octets.data(), N);
}

// ClassPortInfo (13.4.8.1). The response time is the configured delay, or a second.
void class_port_info(const Picture& picture, const Candidate&, uint8_t* to) {
  constexpr uint16_t kCapabilityMask2 = 1 << 2, kPortInfoCapabilityMatch = 1 << 13;
  constexpr uint32_t kExtendedSpeeds = 1 << 7;
  uint8_t time = mad::kLifetimeCode;
  while (time < 31 && TimeNs{4096} << time < picture.delay_ns) ++time;
  to[0] = 1;
  to[1] = 2;
  store16(to + 2, kCapabilityMask2 | kPortInfoCapabilityMatch);
  store32(to + 4, kExtendedSpeeds << 5 | time);
}

void node_record(const Picture& picture, const Candidate& one, uint8_t* to) {
  store16(to, lid_of(picture.subnet, one.at));
  store(to + 4, mad::node_info(picture.subnet, one.at));
  store(to + 44, mad::node_description(picture.state, one.at.node));
}

void port_info_record(const Picture& picture, const Candidate& one, uint8_t* to) {
  store16(to, lid_of(picture.subnet, one.at));
  to[2] = one.at.port;
  store(to + 4, mad::port_info(picture.subnet, picture.state, one.at));
}

void switch_info_record(const Picture& picture, const Candidate& one, uint8_t* to) {
  store16(to, lid_of(picture.subnet, one.at));
  store(to + 4, mad::switch_info(picture.subnet, picture.state, one.at.node));
}

void forwarding_record(const Picture& picture, const Candidate& one, uint8_t* to) {
  store16(to, lid_of(picture.subnet, one.at));
  store16(to + 2, one.block);
  store(to + 8, picture.routes.linear_block(one.at.node, one.block));
}

// Position in the four highest bits of the second field, block in the lowest.
void multicast_record(const Picture& picture, const Candidate& one, uint8_t* to) {
  store16(to, lid_of(picture.subnet, one.at));
  store16(to + 2, one.block);
  uint32_t modifier = uint32_t{one.block} >> 12 << 28 | (one.block & 0x1ff);
  store(to + 8, *picture.state.settings.find(one.at.node, mad::kMulticastTable, modifier));
}

void mapping_record(const Picture& picture, const Candidate& one, uint8_t* to) {
  store16(to, lid_of(picture.subnet, one.at));
  to[2] = static_cast<uint8_t>(one.block);
  to[3] = one.at.port;
  store(to + 8, mad::sl_to_vl(picture.state, one.at, to[2]));
}

void pkey_record(const Picture& picture, const Candidate& one, uint8_t* to) {
  store16(to, lid_of(picture.subnet, one.at));
  to[4] = one.at.port;
  store16(to + 8, mad::kDefaultPartition);
}

void sm_info_record(const Picture& picture, const Candidate& one, uint8_t* to) {
  store16(to, lid_of(picture.subnet, one.at));
  store(to + 4, mad::sm_info(picture.subnet, picture.state));
}

void link_record(const Picture& picture, const Candidate& one, uint8_t* to) {
  Subnet::End there = *picture.routes.across(one.at);
  store16(to, lid_of(picture.subnet, one.at));
  to[2] = one.at.port;
  to[3] = there.port;
  store16(to + 4, lid_of(picture.subnet, there));
}

void guid_info_record(const Picture& picture, const Candidate& one, uint8_t* to) {
  store16(to, lid_of(picture.subnet, one.at));
  store(to + 8, mad::guid_info(picture.subnet, one.at, 0));
}

void nothing(const Picture&, const Candidate&, uint8_t*) {}

// Components, in the order of the mask (15.2.5.2 and on).

constexpr Component kNode[] = {{0, 16},   {16, 0},   {32, 8},   {40, 8},   {48, 8},
                               {56, 8},   {64, 64},  {128, 64}, {192, 64}, {256, 16},
                               {272, 16}, {288, 32}, {320, 8},  {328, 24}, {352, 512}};
constexpr size_t kCapabilityMask = 7;  // of kPortInfo: modifier bit 31 makes it a subset
constexpr Component kPortInfo[] = {
    {0, 16},   {16, 8},  {24, 0},  {32, 64},  {96, 64},  {160, 16}, {176, 16}, {192, 32}, {224, 16},
    {240, 16}, {256, 8}, {264, 8}, {272, 8},  {280, 8},  {288, 4},  {292, 4},  {296, 4},  {300, 4},
    {304, 2},  {306, 0}, {309, 3}, {312, 4},  {316, 4},  {320, 4},  {324, 4},  {328, 4},  {332, 4},
    {336, 8},  {344, 8}, {352, 8}, {360, 4},  {364, 4},  {368, 3},  {371, 5},  {376, 4},  {380, 1},
    {381, 1},  {382, 1}, {383, 1}, {384, 16}, {400, 16}, {416, 16}, {432, 8},  {440, 1},  {441, 0},
    {443, 5},  {448, 0}, {451, 5}, {456, 4},  {460, 4},  {464, 16}, {480, 0},  {488, 24}, {512, 16},
    {528, 4},  {532, 4}, {536, 0}, {539, 5}};
constexpr Component kSwitchInfo[] = {{0, 16},  {16, 0},  {32, 16},  {48, 16},  {64, 16},
                                     {80, 16}, {96, 8},  {104, 8},  {112, 8},  {120, 5},
                                     {125, 1}, {126, 2}, {128, 16}, {144, 16}, {160, 1},
                                     {161, 1}, {162, 1}, {163, 1},  {164, 1}};
constexpr Component kForwarding[] = {{0, 16}, {16, 16}};
constexpr Component kMulticast[] = {{0, 16}, {16, 4}, {20, 0}, {23, 9}};
constexpr Component kMapping[] = {{0, 16}, {16, 8}, {24, 8}};
constexpr Component kPKeys[] = {{0, 16}, {16, 16}, {32, 8}};
constexpr Component kSmInfo[] = {{0, 16},   {16, 0},  {32, 64}, {96, 64},
                                 {160, 32}, {192, 4}, {196, 4}};
constexpr Component kLink[] = {{0, 16}, {16, 8}, {24, 8}, {32, 16}};
constexpr Component kGuidInfo[] = {{0, 16},   {16, 8},   {24, 0},   {32, 0},
                                   {64, 64},  {128, 64}, {192, 64}, {256, 64},
                                   {320, 64}, {384, 64}, {448, 64}, {512, 64}};

struct Table {
  Attribute attribute;
  uint16_t size;
  void (*list)(const Picture&, Candidates&);
  void (*write)(const Picture&, const Candidate&, uint8_t* to);
  std::span<const Component> components;
};
const Table kTables[] = {
    {kClassPortInfo, 72, manager, class_port_info, {}},
    {kNodeRecord, 112, ends, node_record, kNode},
    {kPortInfoRecord, 72, ports, port_info_record, kPortInfo},
    {kSwitchInfoRecord, 24, switches, switch_info_record, kSwitchInfo},
    {kLinearForwardingTableRecord, 72, forwarding_blocks, forwarding_record, kForwarding},
    {kMulticastForwardingTableRecord, 72, multicast_blocks, multicast_record, kMulticast},
    {kSlToVlTableRecord, 16, mappings, mapping_record, kMapping},
    {kPKeyTableRecord, 72, ends, pkey_record, kPKeys},
    {kSmInfoRecord, 32, manager, sm_info_record, kSmInfo},
    {kLinkRecord, 8, cables, link_record, kLink},
    {kGuidInfoRecord, 72, ends, guid_info_record, kGuidInfo},
    // Empty tables: a port has one VL, and registrations are denied (see sa_query.cc).
    {kVlArbitrationTableRecord, 72, no_one, nothing, {}},
    {kServiceRecord, 176, no_one, nothing, {}},
    {kMcMemberRecord, 56, no_one, nothing, {}},
    {kInformInfoRecord, 64, no_one, nothing, {}},
};

const Table* find(uint16_t attribute) {
  for (const Table& table : kTables) {
    if (table.attribute == attribute) return &table;
  }
  return nullptr;
}

class Selection final : public Records {
 public:
  Selection(const Table& table, const mad::Mad& request, const Picture& picture)
      : table_(table), picture_(picture), mask_(wire::load64(&request.bytes[48])) {
    std::copy_n(&request.bytes[56], wanted_.size(), wanted_.begin());
    table.list(picture, candidates_);
    for (Candidate& one : candidates_) {
      one.first = records_;
      records_ += one.count;
    }
    // CapabilityMask (15.2.5.3): the requested bits must be set, others may be.
    constexpr uint32_t kSubset = 1u << 31;
    constexpr uint64_t kBit = uint64_t{1} << kCapabilityMask;
    if (table.attribute != kPortInfoRecord || (request.attribute_modifier() & kSubset) == 0) return;
    if ((mask_ & kBit) == 0) return;
    mask_ &= ~kBit;
    capabilities_ = wire::load32(&wanted_[kCapabilities]);
  }
  size_t size() const override { return table_.size; }
  size_t candidates() const override { return records_; }
  bool make(size_t candidate, uint8_t* record) const override {
    auto next = std::upper_bound(candidates_.begin(), candidates_.end(), candidate,
                                 [](size_t at, const Candidate& one) { return at < one.first; });
    Candidate one = *std::prev(next);
    one.block = static_cast<uint16_t>(one.block + candidate - one.first);
    table_.write(picture_, one, record);
    if (capabilities_ && (wire::load32(record + kCapabilities) & *capabilities_) != *capabilities_)
      return false;
    return matches(table_.components, mask_, wanted_.data(), record);
  }

 private:
  static constexpr size_t kCapabilities = 4 + mad::kPortInfoCapabilities;
  const Table& table_;
  const Picture& picture_;
  uint64_t mask_;
  std::array<uint8_t, 200> wanted_;
  std::optional<uint32_t> capabilities_;
  Candidates candidates_;
  size_t records_ = 0;
};

}  // namespace

std::unique_ptr<Records> records_of(const mad::Mad& request, const Picture& picture) {
  const Table* table = find(request.attribute());
  if (!table) return nullptr;
  return std::make_unique<Selection>(*table, request, picture);
}

size_t record_size(uint16_t attribute) {
  const Table* table = find(attribute);
  return table ? table->size : 0;
}

}  // namespace rocefs::sa
