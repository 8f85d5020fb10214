// MadeUpMemory: the messages of a flow that others READ. Each READ makes them up and nothing is
// kept, because strangers may ask for them.
#pragma once

#include "rdma/packet/memory.h"
#include "rdma/traffic/flow_plan.h"

namespace rocefs {

class MadeUpMemory final : public Memory {
 public:
  // `plan` has no file: one message in each place.
  MadeUpMemory(const FlowPlan& plan, const FlowPattern& pattern) : plan_(plan), pattern_(pattern) {}

  Outcome read(uint64_t offset, std::span<uint8_t> into, MemoryListener& listener,
               uint64_t ticket) override;
  // Fail: the memory's key allows neither.
  Outcome write(uint64_t offset, std::span<const uint8_t> source, MemoryListener& listener,
                uint64_t ticket) override;
  Outcome atomic(uint64_t offset, const AtomicOperation& operation, uint64_t& original,
                 MemoryListener& listener, uint64_t ticket) override;

 private:
  const FlowPlan plan_;
  const FlowPattern pattern_;
};

}  // namespace rocefs
