#include "rdma/traffic/flow_plan.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>

#include "rdma/nic/qp_table.h"
#include "rdma/packet/packet.h"

namespace rocefs {
namespace {

// Messages of a queue pair that may be in flight, however small its window.
constexpr uint64_t kFewestDepth = 64;
// As a program's queue pair may have.
constexpr uint64_t kMostDepth = 16384;
// As many of all queue pairs as if a device had all of them, with the fewest each.
constexpr uint64_t kMostPosted = kFewestDepth * QpTable::kMaxQps;

// Messages that fill the window. The path MTU is not agreed yet: the largest one has the fewest
// packets.
uint64_t depth_of(const FlowSpec& spec, FlowEnds ends) {
  if (ends == FlowEnds::kTwoMounts) return kFewestDepth;
  uint64_t packets = std::max<uint64_t>(1, (spec.size + kMaxMtu - 1) / kMaxMtu);
  uint64_t full = (spec.window + packets - 1) / packets;
  return std::clamp(full, kFewestDepth, std::min(kMostPosted / spec.qps, kMostDepth));
}

}  // namespace

Result<FlowPlan> FlowPlan::of(const FlowSpec& spec, std::optional<uint64_t> file, FlowEnds ends) {
  FlowPlan plan;
  plan.op = spec.op;
  plan.qps = spec.qps;
  plan.size = spec.size;
  plan.count = spec.count;
  plan.file = file;
  if (file) {
    plan.count = std::max<uint64_t>(1, (*file + spec.size - 1) / spec.size);
    plan.depth = depth_of(spec, ends);
    return plan;
  }
  uint64_t header = spec.op == FlowOp::kUd ? kGrhLen : 0;
  uint64_t each = (std::max<uint64_t>(1, spec.size) + header) * spec.qps;
  if (each > kMaxFlowMemory) {
    return errorf(EINVAL, "qps={} of size={} need more than {} bytes of memory", spec.qps,
                  spec.size, kMaxFlowMemory);
  }
  uint64_t wanted = (plan.count + spec.qps - 1) / spec.qps;
  plan.depth =
      std::clamp<uint64_t>(std::min(wanted, kMaxFlowMemory / 4 / each), 1, depth_of(spec, ends));
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

SendRequest FlowPlan::request(uint32_t pair, uint64_t position, const Target& target) const {
  Slot at = slot(pair, position);
  SendRequest request;
  request.wr_id = pair;
  request.sges = Sge{target.address + at.offset, at.length, target.key};
  request.remote_address = target.far_address + at.offset;
  request.rkey = target.far_key;
  request.op = flow_op_info(op).request;
  if (op == FlowOp::kAtomic) {  // all of them add to one number
    request.remote_address = target.far_address;
    request.swap_add = 1;
  }
  if (is_unreliable(op)) {  // the immediate is the message's number
    request.immediate = static_cast<uint32_t>(message_index(pair, position));
    request.path = target.path;
    request.remote_qpn = target.far_qpn;
    request.qkey = kQkey;
  }
  return request;
}

uint64_t FlowPlan::receive_bytes() const {
  return op == FlowOp::kUd ? bytes() + uint64_t{kGrhLen} * qps * depth : bytes();
}

void FlowPattern::stamp(std::span<uint8_t> bytes, uint64_t message, uint64_t at) const {
  for (size_t i = 0; i < bytes.size(); i += kEvery) {
    uint64_t stamp = word(message, at + i);
    std::memcpy(&bytes[i], &stamp, std::min(sizeof stamp, bytes.size() - i));
  }
}

bool FlowPattern::stamped(std::span<const uint8_t> bytes, uint64_t message, uint64_t at) const {
  for (size_t i = 0; i < bytes.size(); i += kEvery) {
    uint64_t stamp = word(message, at + i);
    if (std::memcmp(&bytes[i], &stamp, std::min(sizeof stamp, bytes.size() - i)) != 0) return false;
  }
  return true;
}

void FlowPattern::make(std::span<uint8_t> bytes, uint64_t message, uint64_t at) const {
  std::fill(bytes.begin(), bytes.end(), uint8_t{0});
  for (uint64_t stamped = at / kEvery * kEvery; stamped < at + bytes.size(); stamped += kEvery) {
    auto stamp = std::bit_cast<std::array<uint8_t, sizeof(uint64_t)>>(word(message, stamped));
    uint64_t begin = std::max(stamped, at);
    uint64_t end = std::min<uint64_t>(stamped + stamp.size(), at + bytes.size());
    for (; begin < end; ++begin) bytes[begin - at] = stamp[begin - stamped];
  }
}

void FlowPattern::clear(std::span<uint8_t> bytes) {
  for (size_t i = 0; i < bytes.size(); i += kEvery) {
    std::memset(&bytes[i], 0, std::min(sizeof(uint64_t), bytes.size() - i));
  }
}

}  // namespace rocefs
