// Terms of the verbs interface that built-in traffic and clients share: requests, completions,
// states and attributes, as in IBTA volume 1 (chapters 10 and 11) and the verbs manual.
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "rdma/uapi/operations.h"
#include "rdma/wire/ip.h"

namespace rocefs {

// XRC (IBTA A14): a queue pair sends or receives; packets name the SRQ that takes them.
enum class QpType : uint8_t { kRc, kUc, kUd, kXrcSend, kXrcReceive };
std::string_view name(QpType type);

// Whether packets are acknowledged.
constexpr bool is_reliable(QpType type) {
  return type != QpType::kUc && type != QpType::kUd;
}
constexpr bool is_xrc(QpType type) {
  return type >= QpType::kXrcSend;
}

// Rows of rdma/uapi/operations.h, with their numbers: kWrite and so on.
enum class SendOp : uint8_t {
#define ROCEFS_ROW(NAME, ABI, NUMBER, ...) k##NAME = NUMBER,
  ROCEFS_OPERATIONS(ROCEFS_ROW)
#undef ROCEFS_ROW
};

// Likewise, and what a receive queue tells.
enum class WcOpcode : uint8_t {
  kReceive = ROCEFS_WC_RECV,
  kReceiveWriteImm = ROCEFS_WC_RECV_RDMA_WITH_IMM,
#define ROCEFS_ROW(NAME, ABI, NUMBER) k##NAME = NUMBER,
  ROCEFS_COMPLETIONS(ROCEFS_ROW)
#undef ROCEFS_ROW
};

enum class WcStatus : uint8_t {
  kSuccess,
  kLocalLengthError,
  kLocalQpOperationError,
  kLocalProtectionError,
  kFlushed,
  kWindowBindError,
  kBadResponse,
  kLocalAccessError,  // of a WRITE with immediate, told by its receive
  kRemoteInvalidRequest,
  kRemoteAccessError,
  kRemoteOperationError,
  kRetryExceeded,
  kRnrRetryExceeded,
};
std::string_view name(WcStatus status);

struct Sge {
  uint64_t address;
  uint32_t length;
  uint32_t lkey;
};

inline constexpr size_t kMaxSge = 8;
// READs and atomics in flight, in each direction, as in Soft-RoCE; mlx5 has 16.
inline constexpr uint8_t kMaxRdAtomic = 128;
inline constexpr uint64_t kMaxMessage = uint64_t{1} << 31;  // bytes: the limit of a RETH

// Scatter/gather list of a work request. A copy moves only the entries in use.
class SgeList {
 public:
  SgeList() {}
  SgeList(const Sge& one) : count_(1) { entries_[0] = one; }
  SgeList(const SgeList& other) { *this = other; }
  SgeList& operator=(const SgeList& other) {
    count_ = other.count_;
    std::copy_n(other.entries_.begin(), count_, entries_.begin());
    return *this;
  }
  void clear() { count_ = 0; }
  // At most kMaxSge entries.
  void add(const Sge& entry) {
    assert(count_ < kMaxSge);
    entries_[count_++] = entry;
  }
  std::span<const Sge> entries() const { return {entries_.data(), count_}; }
  uint64_t length() const {
    uint64_t sum = 0;
    for (const Sge& entry : entries()) sum += entry.length;
    return sum;
  }

 private:
  uint32_t count_ = 0;
  std::array<Sge, kMaxSge> entries_;
};

// AddressVector: the path to the far end.
struct AddressVector {
  Ip local{};
  Ip remote{};
  uint8_t traffic_class = 0;
  uint8_t hop_limit = 64;
  uint32_t flow_label = 0;  // 20 bits; 0: the UDP source port follows from the queue pairs
};

struct SendRequest {
  uint64_t wr_id = 0;
  SendOp op = SendOp::kSend;
  bool malformed =
      false;  // client's request that makes no sense: completes with kLocalQpOperationError
  bool signaled = true;
  bool solicited = false;
  bool fence = false;      // waits for earlier READs and atomics
  uint32_t immediate = 0;  // kSendImm, kWriteImm
  uint32_t rkey = 0;       // key of the far memory, to invalidate, or of the window to bind
  uint64_t remote_address = 0;
  SgeList sges;
  uint64_t swap_add = 0;  // kCompareSwap: new value; kFetchAdd: addend
  uint64_t compare = 0;
  uint8_t bind_access = 0;  // kBindWindow: rights of the window; the SGE gives its memory
  // UD: destination.
  AddressVector path;
  uint32_t remote_qpn = 0;
  uint32_t qkey = 0;
  uint32_t remote_srqn = 0;  // XRC: the far end's SRQ
};

struct ReceiveRequest {
  uint64_t wr_id = 0;
  SgeList sges;
};

// The header in the first 40 bytes of a datagram's receive, with its number in ibv_wc.sl: HCAs
// give the L3 type of RoCE there, and UCX asks for it.
enum class Grh : uint8_t { kNone = 0, kIpv6 = 1, kIpv4 = 2 };

struct Completion {
  uint64_t wr_id = 0;
  WcStatus status = WcStatus::kSuccess;
  WcOpcode opcode = WcOpcode::kSend;
  bool has_immediate = false;
  bool has_invalidated = false;
  Grh grh = Grh::kNone;    // UD
  uint32_t byte_len = 0;   // of a receive, READ or atomic
  uint32_t immediate = 0;  // or the key that the far end has invalidated
  uint32_t qpn = 0;
  uint32_t source_qpn = 0;  // UD
  uint32_t srqn = 0;        // XRC: the SRQ of a receive
};

inline constexpr uint32_t kGrhLen = 40;

// Order of the verbs manual. SQD drains until all requests in progress have ended.
enum class QpState : uint8_t { kReset, kInit, kRtr, kRts, kSqd, kSqe, kError };
std::string_view name(QpState state);

// Controlled Q_Keys (IBTA 3.5.3): reserved for privileged users.
constexpr bool is_controlled_qkey(uint32_t qkey) {
  return qkey >> 31;
}

struct QpAttributes {
  uint16_t pkey_index = 0;
  uint8_t port = 1;
  uint8_t access = 0;        // rights of the far end: Access of rdma/packet/memory.h
  uint32_t qkey = 0;         // UD
  uint32_t path_mtu = 1024;  // bytes
  uint32_t remote_qpn = 0;
  uint32_t send_psn = 0;     // 24 bits
  uint32_t receive_psn = 0;  // 24 bits
  uint8_t timeout = 14;      // 4.096 us x 2^timeout; 0 is for ever
  uint8_t retry_count = 7;   // 0..7
  uint8_t rnr_retry = 7;     // 0..7; 7 is for ever
  uint8_t min_rnr_timer = 12;
  uint8_t max_rd_atomic = 16;       // own READs and atomics in flight, at most
  uint8_t max_dest_rd_atomic = 16;  // far end's READs and atomics in flight, at most
  bool notify_drained = false;      // SQD: raise kDrained when all requests in progress have ended
  uint32_t window = 128;            // packets in flight, at most; emulator's own attribute
  AddressVector path;
};

// Attributes that a transition sets, with the names of ibv_qp_attr_mask.
enum QpMask : uint32_t {
  kQpPkeyIndex = 1 << 0,
  kQpPort = 1 << 1,
  kQpAccess = 1 << 2,
  kQpQkey = 1 << 3,
  kQpPath = 1 << 4,
  kQpPathMtu = 1 << 5,
  kQpRemoteQpn = 1 << 6,
  kQpSendPsn = 1 << 7,
  kQpReceivePsn = 1 << 8,
  kQpTimeout = 1 << 9,
  kQpRetryCount = 1 << 10,
  kQpRnrRetry = 1 << 11,
  kQpMinRnrTimer = 1 << 12,
  kQpMaxRdAtomic = 1 << 13,
  kQpMaxDestRdAtomic = 1 << 14,
  kQpWindow = 1 << 15,
  kQpNotifyDrained = 1 << 16,
};

// Events of a queue pair beside completions: affiliated asynchronous events and errors (IBTA
// 11.6.3).
enum class QpEvent : uint8_t {
  kFatal,            // a completion was lost
  kInvalidRequest,   // by the far end, without a receive request to report it
  kAccessViolation,  // by the far end, without a receive request to report it
  kEstablished,      // first packet received in RTR
  kDrained,          // SQD: all requests in progress have ended
  kLastReceive,      // ERR: takes no more from its shared receive queue
};

// Creator of a queue pair, as `ps` shows it, and the user of whose share it is.
struct QpOwner {
  int32_t pid = 0;
  std::string comm;
  uint32_t uid = 0;
  bool privileged = true;  // built-in traffic is
};

// Converts a 5-bit RNR NAK timer code to nanoseconds (IBTA 9.7.5.2.8).
int64_t rnr_timer_ns(uint8_t code);

}  // namespace rocefs
