// MadUser: what an agent of a port is registered with, what it sends and what it hears. Core
// thread.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "mad_cc/mad/mad.h"

namespace rocefs {

// What an agent is registered with: see ib_register_mad_agent() and user_mad(4).
struct MadRegistration {
  uint8_t qpn = 1;         // 0: SMPs
  uint8_t mgmt_class = 0;  // 0: sends only, takes answers to what it sends
  uint8_t class_version = 0;
  uint32_t oui = 0;          // of vendor classes 0x30 to 0x4f
  std::bitset<128> methods;  // unsolicited MADs of these are for it; empty: none are
  uint8_t rmpp_version = 0;  // 0: RMPP is the user's own affair, segments pass as they are
  bool user_rmpp = false;    // the same for an agent of a class with RMPP (IB_USER_MAD_USER_RMPP)
  size_t max_sends = 65536;  // under way at once
};

// Who has agents. Core thread.
class MadUser {
 public:
  // How a send ended, but for an answer.
  enum class End : uint8_t {
    kSent,      // it expected no answer, and is out
    kTimedOut,  // every try (IB_WC_RESP_TIMEOUT_ERR)
    kExpired,   // in the limiter's queue, never sent (IB_WC_RESP_TIMEOUT_ERR as well)
    kFlushed,   // cancelled, or the port has gone (IB_WC_WR_FLUSH_ERR)
    kFailed,    // RMPP was stopped or aborted (IB_WC_REM_ABORT_ERR)
  };
  virtual ~MadUser() = default;
  // For `agent`: an answer to its send `request`, which is over with that; or unsolicited; or a
  // segment of RMPP that is the user's own affair, whose request may be over. A message that the
  // port put together is as long as its headers and data are, which may be less than kMadSize. The
  // user may call the port from within this and ended(), remove_agent() too.
  virtual void received(uint32_t agent, std::optional<uint64_t> request, const mad::Address& from,
                        mad::Message message) = 0;
  virtual void ended(uint32_t agent, uint64_t request, End end) = 0;
};

struct MadSend {
  uint64_t request;  // the user's name for it
  mad::Address to;
  uint32_t timeout_ms = 0;  // 0: no answer is expected
  uint32_t retries = 0;
  mad::Message message;  // its TID's high half is the agent's, as the kernel sets it
};

}  // namespace rocefs
