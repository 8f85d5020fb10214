// MadeUpMemory: the messages of a flow that others READ, made up when they are: nothing is kept,
// for who asks for them may be a stranger.
#pragma once

#include "rdma/packet/memory.h"
#include "rdma/traffic/flow_plan.h"

namespace rocefs {

class MadeUpMemory final : public Memory {
 public:
  // One message in each place of `plan`, which has no file.
  MadeUpMemory(const FlowPlan& plan, const FlowPattern& pattern) : plan_(plan), pattern_(pattern) {}

  Outcome read(uint64_t offset, std::span<uint8_t> into, MemoryListener& listener,
               uint64_t ticket) override;
  // Nobody has the right to these.
  Outcome write(uint64_t offset, std::span<const uint8_t> source, MemoryListener& listener,
                uint64_t ticket) override;
  Outcome atomic(uint64_t offset, const AtomicOperation& operation, uint64_t& original,
                 MemoryListener& listener, uint64_t ticket) override;

 private:
  const FlowPlan plan_;
  const FlowPattern pattern_;
};

}  // namespace rocefs
