// FlowOp: the operations of flows, a row for each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "rdma/packet/memory.h"
#include "rdma/packet/operations.h"
#include "rdma/packet/verbs.h"

namespace rocefs {

// The table. FIRST is its first row and ROW each further one, so that words can be joined.
// ROW(Name, word, operation, service, rights at the far end, bytes of a message or 0 for any,
// files)
#define ROCEFS_FLOW_OPS(FIRST, ROW)                                                         \
  FIRST(Write, "write", kWrite, kRc, kLocalWrite | kRemoteWrite, 0, true)                   \
  ROW(Send, "send", kSend, kRc, kLocalWrite, 0, true)                                       \
  ROW(Read, "read", kRead, kRc, kRemoteRead, 0, true)                                       \
  ROW(Atomic, "atomic", kFetchAdd, kRc, kLocalWrite | kRemoteAtomic, 8, false)              \
  ROW(AtomicWrite, "atomic-write", kAtomicWrite, kRc, kLocalWrite | kRemoteWrite, 8, false) \
  ROW(Uc, "uc", kSendImm, kUc, kLocalWrite, 0, false)                                       \
  ROW(Ud, "ud", kSendImm, kUd, kLocalWrite, 0, false)

// The words with bars between them: "write|send" and so on.
#define ROCEFS_FLOW_WORDS ROCEFS_FLOW_OPS(ROCEFS_FLOW_WORD, ROCEFS_FLOW_BAR_WORD)
#define ROCEFS_FLOW_WORD(NAME, WORD, ...) WORD
#define ROCEFS_FLOW_BAR_WORD(NAME, WORD, ...) "|" WORD

// kWrite and so on.
enum class FlowOp : uint8_t {
#define ROCEFS_ROW(NAME, ...) k##NAME,
  ROCEFS_FLOW_OPS(ROCEFS_ROW, ROCEFS_ROW)
#undef ROCEFS_ROW
};

struct FlowOpInfo {
  std::string_view name;
  SendOp request = SendOp::kWrite;
  QpType service = QpType::kRc;
  uint8_t access = 0;  // of Access: the far end's memory
  uint32_t size = 0;   // bytes of every message; 0: any
  bool files = false;  // a file's bytes can be the messages

  // Whether messages enter the far end's memory without its doing.
  bool writes() const { return access & kRemoteWrite; }
};

inline constexpr FlowOpInfo kFlowOps[] = {
#define ROCEFS_ROW(NAME, WORD, REQUEST, SERVICE, ACCESS, SIZE, FILES) \
  {WORD, SendOp::REQUEST, QpType::SERVICE, ACCESS, SIZE, FILES},
    ROCEFS_FLOW_OPS(ROCEFS_ROW, ROCEFS_ROW)
#undef ROCEFS_ROW
};

constexpr const FlowOpInfo& flow_op_info(FlowOp op) {
  return kFlowOps[static_cast<size_t>(op)];
}

constexpr std::string_view name(FlowOp op) {
  return flow_op_info(op).name;
}
// UC and UD flows send, and may lose messages.
constexpr bool is_unreliable(FlowOp op) {
  return flow_op_info(op).service != QpType::kRc;
}
constexpr bool sends_messages(FlowOp op) {
  return send_op_info(flow_op_info(op).request).has(ROCEFS_RECEIVE);
}

}  // namespace rocefs
