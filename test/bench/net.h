// A fabric on a scheduler that the caller drives, and connected queue pairs on it: through the same
// calls that flows and clients use.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/config/topology.h"
#include "core/loop/engine.h"
#include "core/loop/scheduler.h"
#include "rdma/network/fabric.h"
#include "rdma/nic/device.h"
#include "rdma/packet/memory.h"

namespace rocefs::bench {

inline void require(bool held, const char* what) {
  if (!held) throw std::runtime_error(what);
}

struct Net {
  Scheduler scheduler;
  Outstanding outstanding;
  Fabric fabric;

  explicit Net(const Topology& topology) : fabric(topology, 1, scheduler, outstanding) {}

  // Packets that links have delivered to their far ends.
  uint64_t hops() const {
    uint64_t sum = 0;
    for (const auto& link : fabric.links()) {
      sum += link->counters().packets.get() - link->losses().lost.get();
    }
    return sum;
  }
};

// `count` devices named d0, d1, … on one switch; two without one are cabled to each other.
Topology star(unsigned count, bool with_switch, uint64_t rate_bps, TimeNs delay_ns);

// A connected pair of RC queue pairs with memory at both ends.
class Pair {
 public:
  struct Size {
    uint64_t memory = 64 << 10;  // bytes at each end
    uint32_t depth = 128;        // work requests
    uint32_t window = 128;       // packets
  };
  Pair(Fabric& fabric, const std::string& from, const std::string& to, const Size& size);
  ~Pair();
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  // A WRITE to the same offset at the far end. The queue must have room.
  void write(uint64_t offset, uint32_t length);
  // Completions of the near end since the last call; throws if one is no success.
  size_t completed();
  // Called at each completion, in the middle of a packet's processing: it may only take note.
  void set_listener(std::function<void()> listener) { queue_.set_listener(std::move(listener)); }

  std::span<uint8_t> near_bytes() { return near_memory_->bytes(); }
  std::span<uint8_t> far_bytes() { return far_memory_->bytes(); }

 private:
  static constexpr uint32_t kPd = 3;

  Qp& make(Device& device, uint32_t depth);

  Device& near_device_;
  Device& far_device_;
  CompletionQueue queue_;
  std::array<Completion, 64> batch_;
  std::shared_ptr<LocalMemory> near_memory_, far_memory_;
  uint64_t near_address_, far_address_;
  uint32_t near_key_, far_key_;
  Qp* near_;
  Qp* far_;
};

}  // namespace rocefs::bench
