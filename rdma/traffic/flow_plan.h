// FlowPlan: which messages a flow moves, over which of its queue pairs, and where each lies in the
// memories of both ends. FlowPattern: what made-up messages hold.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "core/base/result.h"
#include "rdma/packet/verbs.h"
#include "rdma/traffic/flow_spec.h"

namespace rocefs {

inline constexpr uint64_t kMaxFlowMemory = uint64_t{1} << 30;  // bytes, per end

constexpr uint64_t mix64(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

struct FlowPlan {
  // A message's place in a memory.
  struct Slot {
    uint64_t offset;
    uint32_t length;
  };
  // What a request works on: the memories of the end that posts it and of the other one, and where
  // a datagram goes.
  struct Target {
    uint64_t address;
    uint32_t key;
    uint64_t far_address;
    uint32_t far_key;
    AddressVector path;
    uint32_t far_qpn;
  };
  static constexpr uint32_t kQkey = 0x11111111;  // as the stock UD programs use

  FlowOp op = FlowOp::kWrite;
  uint32_t qps = 1;
  uint64_t size = 0;             // bytes of a message; the last one of a file may be shorter
  uint64_t count = 0;            // messages
  uint64_t depth = 0;            // messages of one queue pair that may be under way
  std::optional<uint64_t> file;  // bytes of the file, whose messages each have their own place

  // EINVAL when that takes more than kMaxFlowMemory.
  static Result<FlowPlan> of(const FlowSpec& spec, std::optional<uint64_t> file);

  // Message m goes over pair m mod qps.
  uint64_t messages_of(uint32_t pair) const { return count / qps + (pair < count % qps ? 1 : 0); }
  uint64_t message_index(uint32_t pair, uint64_t position) const { return position * qps + pair; }
  Slot slot(uint32_t pair, uint64_t position) const;
  // Where it is received: a datagram brings its routing header.
  Slot receive_slot(uint32_t pair, uint64_t position) const;
  // The message as a work request, whose wr_id is the pair.
  SendRequest request(uint32_t pair, uint64_t position, const Target& target) const;
  // Bytes of the memory that messages leave from, and of the one that they arrive in.
  uint64_t bytes() const { return file ? *file : size * qps * depth; }
  uint64_t receive_bytes() const;
  // What atomics find that add to one number, all together: 0, 1, … count - 1.
  uint64_t originals() const {
    return count % 2 ? (count - 1) / 2 * count : count / 2 * (count - 1);
  }
};

// A message's bytes differ from those of the message that had its slot before, in every packet.
class FlowPattern {
 public:
  explicit FlowPattern(uint64_t seed) : seed_(seed) {}
  // Only the low half of a message's number counts: as much as an immediate carries.
  // `at`: where in the message the bytes are, a multiple of kEvery.
  static constexpr size_t kEvery = 256;  // the smallest MTU: every packet carries a stamp
  void stamp(std::span<uint8_t> bytes, uint64_t message, uint64_t at = 0) const;
  bool stamped(std::span<const uint8_t> bytes, uint64_t message, uint64_t at = 0) const;
  // All bytes of a part of a message as stamp() leaves them in zeroes; `at` is anywhere in it.
  void make(std::span<uint8_t> bytes, uint64_t message, uint64_t at) const;
  // Stamped by no message any more.
  static void clear(std::span<uint8_t> bytes);

 private:
  uint64_t word(uint64_t message, uint64_t offset) const {
    return mix64(seed_ ^ ((message & 0xffffffff) << 31) ^ offset);
  }

  const uint64_t seed_;
};

}  // namespace rocefs
