// MadUser: the registration of an agent of a port, its sends, and the callbacks of its owner. Core
// thread.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "mad_cc/mad/mad.h"

namespace rocefs {

// Registration of an agent: see ib_register_mad_agent() and user_mad(4).
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

// MadUser: owner of agents. Core thread.
class MadUser {
 public:
  // End of a send other than an answer.
  enum class End : uint8_t {
    kSent,      // it expected no answer, and is out
    kTimedOut,  // every try (IB_WC_RESP_TIMEOUT_ERR)
    kExpired,   // in the limiter's queue, never sent (IB_WC_RESP_TIMEOUT_ERR as well)
    kFlushed,   // cancelled, or the port has gone (IB_WC_WR_FLUSH_ERR)
    kFailed,    // RMPP was stopped or aborted (IB_WC_REM_ABORT_ERR)
  };
  virtual ~MadUser() = default;
  // Delivers a message to `agent`: the answer to `request`, which has ended; an unsolicited
  // message; or an RMPP segment if the user does RMPP, whose request may have ended. A message that
  // the port has reassembled has no padding and may be shorter than kMadSize. The user may call the
  // port from within received() and ended(), even remove_agent().
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
