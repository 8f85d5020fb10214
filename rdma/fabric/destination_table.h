// DestinationTable: where the destinations of a fabric are, IP addresses of RoCE packets and MACs
// of Ethernet frames: the switch that each is cabled to, and the port there. All switches share it,
// so that a destination costs one slot and not one at each switch.
//
// Core thread, or before the engine starts.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "rdma/packet/packet.h"
#include "rdma/packet/verbs.h"

namespace rocefs {

class DestinationTable {
 public:
  DestinationTable() : slots_(16) {}

  // Sets where `address` is, in place of an earlier entry. Not on the packet path. The version of
  // `at` does not count.
  void set(const Ip& address, const Destination& at) { set(key_of(address), at); }
  void set(const Mac& address, const Destination& at) { set(key_of(address.data()), at); }
  // Gives `address` the place of `mac`, if that has one. Takes constant time, but for the growth of
  // the table.
  void copy(const Ip& address, const Mac& mac);
  // Asks the CPU for what find() will read first. Of RoCE packets.
  void prefetch(const Packet& packet) const {
    __builtin_prefetch(&slots_[place_of(key_of(packet))]);
  }
  // The packet's destination, kept in it until the table changes; null for an unknown one.
  const Destination* find(const Packet& packet) const {
    if (!found(packet)) {
      const Destination* at =
          find(packet.ethernet ? key_of(packet.frame->ethernet.data()) : key_of(packet));
      if (!at) return nullptr;
      packet.destination = {at->hub, at->port, version_};
    }
    return &packet.destination;
  }
  // Whether find() need not search.
  bool found(const Packet& packet) const { return packet.destination.version == version_; }

 private:
  struct Key {
    uint64_t high = 0, low = 0;
    bool operator==(const Key&) const = default;
  };
  struct Slot {
    Key key;
    Destination at;
    bool taken = false;
  };
  static Key key_of(const Ip& ip);
  static Key key_of(const uint8_t* mac);
  static Key key_of(const Packet& packet);
  size_t place_of(const Key& key) const;
  const Destination* find(const Key& key) const {
    for (size_t at = place_of(key);; at = (at + 1) & (slots_.size() - 1)) {
      const Slot& slot = slots_[at];
      if (!slot.taken) return nullptr;
      if (slot.key == key) return &slot.at;
    }
  }
  void set(const Key& key, const Destination& at);
  Slot& slot_of(const Key& key);
  void grow();

  std::vector<Slot> slots_;  // open addressing; a power of two, at most half full
  size_t taken_ = 0;
  uint32_t version_ = 1;
};

inline size_t DestinationTable::place_of(const Key& key) const {
  __extension__ using Wide = unsigned __int128;
  constexpr uint64_t kMixer = 0x9e3779b97f4a7c15;
  Wide product = Wide{key.low ^ kMixer} * (key.high ^ ~kMixer);
  uint64_t folded = static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  return folded & (slots_.size() - 1);
}

inline DestinationTable::Key DestinationTable::key_of(const Ip& ip) {
  Key key;
  std::memcpy(&key.high, ip.data(), 8);
  std::memcpy(&key.low, ip.data() + 8, 8);
  return key;
}

// No IP address that has a route begins with 64 bits of ones.
inline DestinationTable::Key DestinationTable::key_of(const uint8_t* mac) {
  Key key{~uint64_t{0}, 0};
  std::memcpy(&key.low, mac, sizeof(Mac));
  return key;
}

inline DestinationTable::Key DestinationTable::key_of(const Packet& packet) {
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
