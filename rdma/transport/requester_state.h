// RequesterState: whether the requester of a queue pair sends, and why not.
//
//                    RNR NAK
//         +----------------------> RNR_WAIT
//         |  <---------------------   |
//         |      the wait is over     |
//      SENDING                        | retries exceeded, fatal NAK,
//         |  <---------------------   | bad response, no place for it
//         |      a NAK or a time-out  |
//         |      goes back            |
//         +----------------------> BLOCKED
//         | the request whose turn    |
//         | it is cannot be sent      |
//         v                           v
//       FAILED <----------------------+
//
// BLOCKED: the request at the cursor has failed before it left. It ends when all before it have
// ended, so that these keep their true status. The failure is found again after going back.
// FAILED: a request in flight has failed for good. It ends when it is the oldest, and with it the
// connection (ERR) or, of UC and UD, the sending half (SQE). From there only RESET leads back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rocefs {

enum class RequesterState : uint8_t { kSending, kRnrWait, kBlocked, kFailed };

inline constexpr std::string_view kRequesterStates[] = {"SENDING", "RNR_WAIT", "BLOCKED", "FAILED"};

constexpr std::string_view name(RequesterState state) {
  return kRequesterStates[static_cast<size_t>(state)];
}

}  // namespace rocefs
