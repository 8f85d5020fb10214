#include "rdma/packet/verbs.h"

#include "core/base/time.h"

namespace rocefs {

std::string_view name(QpType type) {
  switch (type) {
    case QpType::kRc:
      return "RC";
    case QpType::kUc:
      return "UC";
    case QpType::kUd:
      return "UD";
    case QpType::kXrcSend:
      return "XRC_SEND";
    case QpType::kXrcReceive:
      return "XRC_RECV";
  }
  return "?";
}

std::string_view name(WcStatus status) {
  switch (status) {
    case WcStatus::kSuccess:
      return "success";
    case WcStatus::kLocalLengthError:
      return "local length error";
    case WcStatus::kLocalQpOperationError:
      return "local QP operation error";
    case WcStatus::kLocalProtectionError:
      return "local protection error";
    case WcStatus::kFlushed:
      return "work request flushed";
    case WcStatus::kWindowBindError:
      return "memory window bind error";
    case WcStatus::kBadResponse:
      return "bad response";
    case WcStatus::kLocalAccessError:
      return "local access error";
    case WcStatus::kRemoteInvalidRequest:
      return "remote invalid request";
    case WcStatus::kRemoteAccessError:
      return "remote access error";
    case WcStatus::kRemoteOperationError:
      return "remote operation error";
    case WcStatus::kRetryExceeded:
      return "transport retry count exceeded";
    case WcStatus::kRnrRetryExceeded:
      return "RNR retry count exceeded";
  }
  return "?";
}

std::string_view name(QpState state) {
  switch (state) {
    case QpState::kReset:
      return "RESET";
    case QpState::kInit:
      return "INIT";
    case QpState::kRtr:
      return "RTR";
    case QpState::kRts:
      return "RTS";
    case QpState::kSqd:
      return "SQD";
    case QpState::kSqe:
      return "SQE";
    case QpState::kError:
      return "ERR";
  }
  return "?";
}

int64_t rnr_timer_ns(uint8_t code) {
  // RNR NAK timers in hundredths of a millisecond.
  constexpr int64_t kTimers[32] = {65536, 1,    2,    3,     4,     6,     8,     12,
                                   16,    24,   32,   48,    64,    96,    128,   192,
                                   256,   384,  512,  768,   1024,  1536,  2048,  3072,
                                   4096,  6144, 8192, 12288, 16384, 24576, 32768, 49152};
  return kTimers[code & 31] * 10 * kMicrosecond;
}

}  // namespace rocefs
