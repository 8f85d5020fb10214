// MadPort: the MAD layer of one port, as the kernel's ib_mad has it: agents register for classes
// and methods, send requests with time-outs and retries, and are given answers and what else is for
// them. RMPP is done here for agents that ask for it. SA requests pass the port's limiter.
//
// Core thread.
#pragma once

#include <cstdint>
#include <deque>

#include "core/base/result.h"
#include "core/loop/scheduler.h"
#include "mad_cc/mad/mad.h"
#include "mad_cc/net/mad_carrier.h"
#include "mad_cc/port/limiter.h"
#include "mad_cc/port/mad_agents.h"
#include "mad_cc/port/mad_sends.h"
#include "mad_cc/port/mad_user.h"
#include "mad_cc/port/reassembly.h"

namespace rocefs {

class MadPort final : public MadReceiver, private SaLimiter::Sender {
 public:
  // All outlive it.
  MadPort(MadCarrier& carrier, Scheduler& scheduler);

  SaLimiter& limiter() { return limiter_; }
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
  void arrive() { gone_ = false; }

  // Sends whose end is not told yet.
  size_t sends_under_way() const { return sends_.size(); }
  // RMPP messages on their way here, and complete ones whose segments are acknowledged again.
  size_t reassemblies() const { return reassembly_.size(); }

 private:
  using End = MadUser::End;
  using Send = MadSends::Entry;
  using Phase = MadSends::Phase;

  // Ends or tries per event. What is due at one instant is done in several events, so that others
  // run in between.
  static constexpr size_t kSlice = 1024;

  // SaLimiter::Sender.
  void transmit(uint64_t id, TimeNs now) override;
  void expire(uint64_t id, TimeNs now) override;

  // A send from its agent to its end.
  void start(Send& send);
  void transmit_mad(const mad::Address& to, const mad::Mad& mad);
  void transmit_once(Send& send);
  void transmit_segments(Send& send);
  void await_answer(Send& send, uint32_t timeout_ms);
  void finish_in_limiter(Send& send);
  void end(Send& send, End end);
  void forget(Send& send);

  void reply(const mad::Address& from, const mad::Mad& mad);
  void receive_segment(uint32_t agent, const mad::Address& from, const mad::Mad& mad);
  void receive_answer_to_segments(uint32_t agent, const mad::Address& from, const mad::Mad& mad);
  void deliver(uint32_t agent, const mad::Address& from, const mad::Mad& mad, mad::Message message);

  void arm_timer();
  void on_timer(TimeNs now);
  void on_timeout(Send& send);
  Send* match(uint32_t agent, uint16_t lid, const mad::Mad& mad);
  void report_ends(TimeNs now);

  SaLimiter limiter_{*this};
  MadCarrier& carrier_;
  Scheduler& scheduler_;
  MadAgents agents_;
  MadSends sends_;
  Reassembly reassembly_;
  std::deque<uint64_t> ended_;  // ids of sends whose users are to be told; some are forgotten
  bool gone_ = false;
  // Latest deadline that has passed while sends with it still wait for their slice; an instant of
  // the past if none do.
  TimeNs overdue_ = -1;
  Event timer_ = event_of<&MadPort::on_timer>(this);
  Event report_ = event_of<&MadPort::report_ends>(this);
};

}  // namespace rocefs
