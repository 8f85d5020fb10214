#include "rdma/fabric/route_table.h"

#include <cstring>

namespace rocefs {
namespace {

constexpr uint64_t kHashMixer = 0x9e3779b97f4a7c15;

uint64_t fold(uint64_t a, uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  Wide product = Wide{a} * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

}  // namespace

void RouteTable::set(size_t hub, std::span<const uint16_t> hops) {
  if (hub >= by_hub_.size()) by_hub_.resize(hub + 1);
  auto [known, is_new] = known_.try_emplace(std::vector<uint16_t>(hops.begin(), hops.end()));
  if (is_new && !hops.empty()) {
    known->second = static_cast<uint16_t>(sets_.size());
    sets_.push_back(
        {static_cast<uint32_t>(hops_.size()), static_cast<uint16_t>(hops.size()), hops[0]});
    hops_.insert(hops_.end(), hops.begin(), hops.end());
  }
  by_hub_[hub] = known->second;
}

void RouteTable::clear() {
  by_hub_.clear();
  sets_.resize(1);
  hops_.clear();
  known_.clear();
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
    hash = fold(hash ^ word(8), word(16) ^ kHashMixer);
    hash = fold(hash ^ word(24), word(32) ^ kHashMixer);
    hash = fold(hash ^ salt_, (ports(40) << 8 | packet.header[6]) ^ kHashMixer);
  } else {
    hash = fold(hash ^ word(12), (ports(20) << 8 | packet.header[9]) ^ kHashMixer);
  }
  return fold(hash ^ salt_, ~kHashMixer);
}

}  // namespace rocefs
