// The words of the verbs interface that built-in traffic and clients share: requests, completions,
// states and attributes (IBTA volume 1, chapters 10 and 11).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace rocefs {

using Ip = std::array<uint8_t, 16>;  // IPv4 as ::ffff:a.b.c.d, as in a GID

inline Ip mapped_ipv4(const std::array<uint8_t, 4>& v4) {
  return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, v4[0], v4[1], v4[2], v4[3]};
}
inline bool is_mapped_ipv4(const Ip& ip) {
  for (size_t i = 0; i < 10; ++i) {
    if (ip[i] != 0) return false;
  }
  return ip[10] == 0xff && ip[11] == 0xff;
}

enum class SendOp : uint8_t { kSend, kWrite };
enum class WcOpcode : uint8_t { kSend, kWrite, kReceive };

// IBTA 11.6.2, the statuses that can happen here.
enum class WcStatus : uint8_t {
  kSuccess,
  kLocalLengthError,
  kLocalProtectionError,
  kFlushed,
  kRemoteInvalidRequest,
  kRemoteAccessError,
  kRemoteOperationError,
  kRetryExceeded,
  kRnrRetryExceeded,
};
std::string_view name(WcStatus status);

struct Sge {
  uint64_t address = 0;
  uint32_t length = 0;
  uint32_t lkey = 0;
};

struct SendRequest {
  uint64_t wr_id = 0;
  SendOp op = SendOp::kSend;
  bool signaled = true;
  bool solicited = false;
  Sge sge;
  uint64_t remote_address = 0;  // kWrite
  uint32_t rkey = 0;            // kWrite
};

struct ReceiveRequest {
  uint64_t wr_id = 0;
  Sge sge;
};

struct Completion {
  uint64_t wr_id = 0;
  WcStatus status = WcStatus::kSuccess;
  WcOpcode opcode = WcOpcode::kSend;
  uint32_t byte_len = 0;  // of a receive
  uint32_t qpn = 0;
};

enum class QpState : uint8_t { kReset, kInit, kRtr, kRts, kError };
std::string_view name(QpState state);

// How the far end is reached.
struct AddressVector {
  Ip local{};
  Ip remote{};
  uint8_t traffic_class = 0;
  uint8_t hop_limit = 64;
};

struct QpAttributes {
  AddressVector path;
  uint32_t path_mtu = 1024;  // bytes
  uint32_t remote_qpn = 0;
  uint32_t send_psn = 0;     // 24 bits
  uint32_t receive_psn = 0;  // 24 bits
  uint8_t timeout = 14;      // 4.096 us x 2^timeout; 0 is for ever
  uint8_t retry_count = 7;   // 0..7
  uint8_t rnr_retry = 7;     // 0..7; 7 is for ever
  uint8_t min_rnr_timer = 12;
  uint8_t access = 0;     // what the far end may do
  uint32_t window = 128;  // packets that may be unacknowledged
};

// Who made a QP, as `ps` would show it.
struct Owner {
  int32_t pid = 0;
  std::string comm;
};

// The RNR NAK timer of a 5-bit code, in nanoseconds (IBTA table 45).
int64_t rnr_timer_ns(uint8_t code);

}  // namespace rocefs
