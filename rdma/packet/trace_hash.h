// TraceHash: a running hash over link, headers, length and time of every packet that links carried
// or lost. Two runs with equal hashes sent the same packets at the same times.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>

#include "rdma/packet/packet.h"

namespace rocefs {

class TraceHash {
 public:
  // Core thread.
  void carried(TimeNs now, uint32_t link, const Packet& packet) {
    uint64_t hash = value_.load(std::memory_order_relaxed);
    hash = mix(hash, static_cast<uint64_t>(now));
    hash = mix(hash, uint64_t{link} << 32 | packet.wire_length());
    hash = mix(hash, digest(packet));
    value_.store(hash, std::memory_order_relaxed);
  }
  void reset() { value_.store(0, std::memory_order_relaxed); }
  // Any thread.
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  // Hashes the header in pairs of words, which do not wait for each other; the last pair ends where
  // the header does. Every header of a RoCE packet is longer than a pair; of an Ethernet frame only
  // that header is hashed, since the kernel of a host does not repeat itself.
  static uint64_t digest(const Packet& packet) {
    if (packet.ethernet) return fold(packet.frame->ethernet.data(), kKey);
    const uint8_t* header = packet.header.data();
    uint64_t sum = 0, key = kKey;
    size_t i = 0;
    for (; i + 16 < packet.header_len; i += 16, key += kKey) sum += fold(header + i, key);
    return sum + fold(header + packet.header_len - 16, key);
  }
  static uint64_t fold(const uint8_t* bytes, uint64_t key) {
    __extension__ using Wide = unsigned __int128;
    uint64_t words[2];
    std::memcpy(words, bytes, sizeof words);
    Wide product = Wide{words[0] ^ key} * (words[1] ^ ~key);
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  }
  static uint64_t mix(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x9fb21c651e98df25;
    return hash ^ (hash >> 32);
  }

  static constexpr uint64_t kKey = 0x9e3779b97f4a7c15;
  std::atomic<uint64_t> value_{0};
};

}  // namespace rocefs
