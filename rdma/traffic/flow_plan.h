// FlowPlan: the messages of a flow, the queue pair of each, and its place in the memory of both
// ends. FlowPattern: the content of made-up messages.
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

// Between two mounts both ends must come to one plan, also where their versions differ.
enum class FlowEnds : uint8_t { kOneMount, kTwoMounts };

struct FlowPlan {
  // A message's place in a memory.
  struct Slot {
    uint64_t offset;
    uint32_t length;
  };
  // The memory of the end that posts a request, that of the other end, and the destination of a
  // datagram.
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
  uint64_t depth = 0;            // messages of a queue pair in flight at most
  std::optional<uint64_t> file;  // bytes of the file; each of its messages has its own place

  // EINVAL for a flow that needs more than kMaxFlowMemory.
  static Result<FlowPlan> of(const FlowSpec& spec, std::optional<uint64_t> file,
                             FlowEnds ends = FlowEnds::kOneMount);

  // Message m goes over pair m mod qps.
  uint64_t messages_of(uint32_t pair) const { return count / qps + (pair < count % qps ? 1 : 0); }
  uint64_t message_index(uint32_t pair, uint64_t position) const { return position * qps + pair; }
  Slot slot(uint32_t pair, uint64_t position) const;
  // The place of its receive request: a datagram brings its GRH (IBTA 11.4.1.2).
  Slot receive_slot(uint32_t pair, uint64_t position) const;
  // The message as a work request, whose wr_id is the pair.
  SendRequest request(uint32_t pair, uint64_t position, const Target& target) const;
  // Bytes of memory at the near end and at the far end.
  uint64_t bytes() const { return file ? *file : size * qps * depth; }
  uint64_t receive_bytes() const;
  // The sum of the numbers that atomics find, which all add to one number: 0, 1, … count - 1.
  uint64_t originals() const {
    return count % 2 ? (count - 1) / 2 * count : count / 2 * (count - 1);
  }
};

// Each packet of a message has a stamp that differs from that of the message before it in its slot.
class FlowPattern {
 public:
  explicit FlowPattern(uint64_t seed) : seed_(seed) {}
  static constexpr size_t kEvery = 256;  // bytes: the smallest MTU, so every packet has a stamp
  // Only the low 32 bits of a message's number count, as many as an immediate has. `at`: the offset
  // of the bytes in the message, a multiple of kEvery.
  void stamp(std::span<uint8_t> bytes, uint64_t message, uint64_t at = 0) const;
  bool stamped(std::span<const uint8_t> bytes, uint64_t message, uint64_t at = 0) const;
  // Fills a part of a message as if stamp() had worked on zeroes; `at` is any offset.
  void make(std::span<uint8_t> bytes, uint64_t message, uint64_t at) const;
  // Removes the stamps.
  static void clear(std::span<uint8_t> bytes);

 private:
  uint64_t word(uint64_t message, uint64_t offset) const {
    return mix64(seed_ ^ ((message & 0xffffffff) << 31) ^ offset);
  }

  const uint64_t seed_;
};

}  // namespace rocefs
