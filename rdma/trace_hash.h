// TraceHash: a running hash over the time, link, headers and length of every transmitted packet.
// Two runs with equal hashes sent the same packets at the same times.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>

#include "rdma/packet.h"

namespace rocefs {

class TraceHash {
 public:
  // Core thread.
  void transmitted(TimeNs now, uint32_t link, const Packet& packet) {
    uint64_t hash = value_.load(std::memory_order_relaxed);
    hash = mix(hash, static_cast<uint64_t>(now));
    hash = mix(hash, uint64_t{link} << 32 | packet.wire_length());
    size_t i = 0;
    for (; i + 8 <= packet.header_len; i += 8) hash = mix(hash, load(packet, i, 8));
    if (i < packet.header_len) hash = mix(hash, load(packet, i, packet.header_len - i));
    value_.store(hash, std::memory_order_relaxed);
  }
  // Any thread.
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  static uint64_t load(const Packet& packet, size_t offset, size_t size) {
    uint64_t word = 0;
    std::memcpy(&word, packet.header.data() + offset, size);
    return word;
  }
  static uint64_t mix(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x9fb21c651e98df25;
    return hash ^ (hash >> 32);
  }

  std::atomic<uint64_t> value_{0};
};

}  // namespace rocefs
