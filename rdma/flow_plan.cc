#include "rdma/flow_plan.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "rdma/flow.h"
#include "rdma/verbs.h"

namespace rocefs {
namespace {

constexpr uint64_t kMaxDepth = 64;
constexpr size_t kStampEvery = 256;  // the smallest MTU: every packet carries a stamp

}  // namespace

// How many messages, and how many at a time.
Result<FlowPlan> FlowPlan::of(const FlowSpec& spec, std::optional<uint64_t> file) {
  FlowPlan plan;
  plan.op = spec.op;
  plan.qps = spec.qps;
  plan.size = spec.size;
  plan.count = spec.count;
  plan.file = file;
  if (file) {
    plan.count = std::max<uint64_t>(1, (*file + spec.size - 1) / spec.size);
    plan.depth = kMaxDepth;
    return plan;
  }
  uint64_t each = (std::max<uint64_t>(1, spec.size) + kGrhLen) * spec.qps;
  if (each > kMaxFlowMemory) {
    return errorf(EINVAL, "qps={} of size={} need more than {} bytes of memory", spec.qps,
                  spec.size, kMaxFlowMemory);
  }
  uint64_t wanted = (plan.count + spec.qps - 1) / spec.qps;
  plan.depth = std::clamp<uint64_t>(std::min(wanted, kMaxFlowMemory / 4 / each), 1, kMaxDepth);
  return plan;
}

FlowPlan::Slot FlowPlan::slot(uint32_t pair, uint64_t position) const {
  if (file) {
    uint64_t offset = message_index(pair, position) * size;
    return {offset, static_cast<uint32_t>(std::min(size, *file - offset))};
  }
  return {(pair * depth + position % depth) * size, static_cast<uint32_t>(size)};
}

FlowPlan::Slot FlowPlan::receive_slot(uint32_t pair, uint64_t position) const {
  if (op != FlowOp::kUd) return slot(pair, position);
  uint64_t length = size + kGrhLen;
  return {(pair * depth + position % depth) * length, static_cast<uint32_t>(length)};
}

uint64_t FlowPlan::receive_bytes() const {
  return op == FlowOp::kUd ? bytes() + uint64_t{kGrhLen} * qps * depth : bytes();
}

void FlowPattern::stamp(std::span<uint8_t> bytes, uint64_t message) const {
  for (size_t i = 0; i < bytes.size(); i += kStampEvery) {
    uint64_t stamp = word(message, i);
    std::memcpy(&bytes[i], &stamp, std::min(sizeof stamp, bytes.size() - i));
  }
}

bool FlowPattern::stamped(std::span<const uint8_t> bytes, uint64_t message) const {
  for (size_t i = 0; i < bytes.size(); i += kStampEvery) {
    uint64_t stamp = word(message, i);
    if (std::memcmp(&bytes[i], &stamp, std::min(sizeof stamp, bytes.size() - i)) != 0) return false;
  }
  return true;
}

void FlowPattern::clear(std::span<uint8_t> bytes) {
  for (size_t i = 0; i < bytes.size(); i += kStampEvery) {
    std::memset(&bytes[i], 0, std::min(sizeof(uint64_t), bytes.size() - i));
  }
}

}  // namespace rocefs
