#include "rdma/fabric/route_table.h"

namespace rocefs {

RouteTable::RouteTable(uint64_t salt) : salt_(salt), slots_(16) {}

RouteTable::Slot& RouteTable::slot_of(const Key& key) {
  size_t at = place_of(key);
  while (slots_[at].count != 0 && slots_[at].key != key) at = (at + 1) & (slots_.size() - 1);
  return slots_[at];
}

void RouteTable::grow() {
  std::vector<Slot> before(slots_.size() * 2);
  std::swap(before, slots_);
  for (const Slot& slot : before) {
    if (slot.count != 0) slot_of(slot.key) = slot;
  }
}

void RouteTable::copy(const Ip& destination, const Mac& mac) {
  if ((taken_ + 1) * 2 > slots_.size()) grow();
  Slot from = slot_of(key_of(mac.data()));
  if (from.count == 0) return;
  Slot& slot = slot_of(key_of(destination));
  if (slot.count == 0) ++taken_;
  slot = {key_of(destination), from.first, from.count};
}

void RouteTable::set(const Key& key, std::span<const uint16_t> hops) {
  if (hops.empty()) return;
  if ((taken_ + 1) * 2 > slots_.size()) grow();
  Slot& slot = slot_of(key);
  if (slot.count == 0) ++taken_;
  slot = {key, static_cast<uint32_t>(hops_.size()), static_cast<uint32_t>(hops.size())};
  hops_.insert(hops_.end(), hops.begin(), hops.end());
}

uint64_t RouteTable::flow_hash(const Packet& packet) const {
  auto word = [&](size_t at) {
    uint64_t value;
    std::memcpy(&value, packet.header.data() + at, sizeof value);
    return value;
  };
  auto ports = [&](size_t at) {
    uint32_t value;
    std::memcpy(&value, packet.header.data() + at, sizeof value);
    return uint64_t{value};
  };
  uint64_t hash = salt_;
  if (packet.header[0] >> 4 == 6) {
    hash = fold(hash ^ word(8), word(16) ^ kMixer);
    hash = fold(hash ^ word(24), word(32) ^ kMixer);
    hash = fold(hash ^ salt_, (ports(40) << 8 | packet.header[6]) ^ kMixer);
  } else {
    hash = fold(hash ^ word(12), (ports(20) << 8 | packet.header[9]) ^ kMixer);
  }
  return fold(hash ^ salt_, ~kMixer);
}

}  // namespace rocefs
