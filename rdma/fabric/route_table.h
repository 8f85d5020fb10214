// RouteTable: a switch's next hops by destination address, IP of RoCE packets and MAC of Ethernet
// frames, and a flow's choice among equal ones
// (ECMP) by a hash of its five-tuple, salted, so that the choices of successive switches are
// independent.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "rdma/packet/packet.h"
#include "rdma/packet/verbs.h"

namespace rocefs {

class RouteTable {
 public:
  explicit RouteTable(uint64_t salt);

  // Sets the ports through which `destination` is nearest, in place of earlier ones. Not on the
  // packet path.
  void set(const Ip& destination, std::span<const uint16_t> hops) {
    set(key_of(destination), hops);
  }
  void set(const Mac& destination, std::span<const uint16_t> hops) {
    set(key_of(destination.data()), hops);
  }
  // Gives `destination` the ports of `mac`. Takes constant time, but for the growth of the table.
  void copy(const Ip& destination, const Mac& mac);
  // Next hops of the packet's destination; empty without a route.
  std::span<const uint16_t> find(const Packet& packet) const {
    Key key = packet.ethernet ? key_of(packet.frame->ethernet.data()) : key_of(packet);
    for (size_t at = place_of(key);; at = (at + 1) & (slots_.size() - 1)) {
      const Slot& slot = slots_[at];
      if (slot.count == 0) return {};
      if (slot.key == key) return {hops_.data() + slot.first, slot.count};
    }
  }
  // Hash of source and destination address, protocol and UDP ports; all bits are equally random.
  uint64_t flow_hash(const Packet& packet) const;
  // A number below `count`, uniformly distributed.
  static size_t choose(uint64_t flow_hash, size_t count) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<size_t>(Wide{flow_hash} * count >> 64);
  }

 private:
  struct Key {
    uint64_t high = 0, low = 0;
    bool operator==(const Key&) const = default;
  };
  struct Slot {
    Key key;
    uint32_t first = 0, count = 0;  // range of hops_; count 0: free slot
  };
  static Key key_of(const Ip& ip);
  static Key key_of(const uint8_t* mac);
  static Key key_of(const Packet& packet);
  static uint64_t fold(uint64_t a, uint64_t b);
  size_t place_of(const Key& key) const {
    return fold(key.low ^ kMixer, key.high ^ ~kMixer) & (slots_.size() - 1);
  }
  void set(const Key& key, std::span<const uint16_t> hops);
  Slot& slot_of(const Key& key);
  void grow();

  static constexpr uint64_t kMixer = 0x9e3779b97f4a7c15;

  const uint64_t salt_;
  std::vector<Slot> slots_;  // open addressing; a power of two, at most half full
  size_t taken_ = 0;
  std::vector<uint16_t> hops_;
};

inline uint64_t RouteTable::fold(uint64_t a, uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  Wide product = Wide{a} * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

inline RouteTable::Key RouteTable::key_of(const Ip& ip) {
  Key key;
  std::memcpy(&key.high, ip.data(), 8);
  std::memcpy(&key.low, ip.data() + 8, 8);
  return key;
}

// No IP address that has a route begins with 64 bits of ones.
inline RouteTable::Key RouteTable::key_of(const uint8_t* mac) {
  Key key{~uint64_t{0}, 0};
  std::memcpy(&key.low, mac, sizeof(Mac));
  return key;
}

inline RouteTable::Key RouteTable::key_of(const Packet& packet) {
  const uint8_t* header = packet.header.data();
  Key key;
  if (header[0] >> 4 == 6) {
    std::memcpy(&key.high, header + 24, 8);
    std::memcpy(&key.low, header + 32, 8);
    return key;
  }
  uint8_t low[8] = {0, 0, 0xff, 0xff};
  std::memcpy(low + 4, header + 16, 4);
  std::memcpy(&key.low, low, 8);
  return key;
}

}  // namespace rocefs
