// MadPort: the MAD layer of one port, as the kernel's ib_mad has it: agents register for classes
// and methods, send requests with time-outs and retries, and are given answers and what else is for
// them. RMPP is done here for agents that ask for it. SA requests pass the port's limiter.
//
// Core thread.
#pragma once

#include <bitset>
#include <cstdint>
#include <memory>
#include <optional>

#include "core/base/result.h"
#include "core/loop/scheduler.h"
#include "mad_cc/mad/mad.h"
#include "mad_cc/net/mad_carrier.h"
#include "mad_cc/port/limiter.h"

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

class MadPort final : public MadReceiver, private SaLimiter::Sender {
 public:
  // All outlive it.
  MadPort(MadCarrier& carrier, Scheduler& scheduler);
  ~MadPort() override;

  SaLimiter& limiter() { return *limiter_; }
  // After settings of the limiter changed from outside: its deadlines are looked at anew.
  void configure_limiter(const SaLimiter::Settings& settings);

  // EINVAL for what the kernel does not register, EBUSY where another has that class, version and
  // method; ENODEV while the port has gone. The id is not 0 and not used again soon.
  Result<uint32_t> add_agent(const MadRegistration& registration, MadUser& user);
  // What it has sent is forgotten without a word. Unknown ids are ignored.
  void remove_agent(uint32_t agent);
  // The TID's high half that this agent's requests have on the wire.
  static uint32_t high_tid(uint32_t agent) { return agent; }

  // EBUSY: refused by the limiter. EINVAL: the agent is none, its registration does not allow the
  // message, or a send of that name is under way. ENOMEM: max_sends of the agent are under way, or
  // kMaxOctets of the port's would be, or the message is longer than kMaxMessage. Its end follows,
  // not from within this. Longer than kMadSize may be what has RMPP active and is of an agent whose
  // RMPP the port does.
  Result<void> send(uint32_t agent, MadSend send);
  // Ends it with kFlushed, not from within this; unknown ones and those that have ended are
  // ignored.
  void cancel(uint32_t agent, uint64_t request);
  static constexpr size_t kMaxMessage = 16 << 20;  // octets
  static constexpr size_t kMaxOctets = 256 << 20;

  void receive(const mad::Address& from, const mad::Mad& mad) override;

  // The device's driver lets go of it: what agents have sent ends with kFlushed from within this
  // (M14), then every agent is gone without a word.
  void leave();
  void arrive();

  // Sends whose end is not told yet.
  size_t sends_under_way() const;
  // RMPP messages on their way here, and complete ones whose segments are acknowledged again.
  size_t reassemblies() const;

 private:
  struct Impl;
  void transmit(uint64_t id, TimeNs now) override;
  void expire(uint64_t id, TimeNs now) override;
  std::unique_ptr<SaLimiter> limiter_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rocefs
