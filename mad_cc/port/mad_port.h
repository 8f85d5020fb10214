// MadPort: the MAD layer of one port, as the kernel's ib_mad: agents register for classes and
// methods, send requests with time-outs and retries, and receive answers and unsolicited MADs. RMPP
// is done here for agents that ask for it. SA requests pass the port's limiter.
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
  // The arguments outlive the port.
  MadPort(MadCarrier& carrier, Scheduler& scheduler);

  SaLimiter& limiter() { return limiter_; }
  // Changes the limiter's settings and arms the timer anew.
  void configure_limiter(const SaLimiter::Settings& settings);

  // Fails with EINVAL for a registration that the kernel refuses, with EBUSY if another agent has
  // that class, version and method, with ENODEV while the port is unbound. The id is not 0 and not
  // reused soon.
  Result<uint32_t> add_agent(const MadRegistration& registration, MadUser& user);
  // Removes the agent and drops its sends without notice. Ignores unknown ids.
  void remove_agent(uint32_t agent);
  // High half of the TID that this agent's requests have on the wire.
  static uint32_t high_tid(uint32_t agent) { return agent; }

  // EBUSY: refused by the limiter. EINVAL: no such agent, its registration does not allow the
  // message, or a send with that name is in progress. ENOMEM: max_sends of the agent are in
  // progress, kMaxOctets of the port would be exceeded, or the message is longer than kMaxMessage.
  // Otherwise the user gets an end or an answer later, not from within this call. Only messages
  // with RMPP active, of an agent whose RMPP the port does, may be longer than kMadSize.
  Result<void> send(uint32_t agent, MadSend send);
  // Ends a send with kFlushed, not from within this call. Ignores unknown and ended sends.
  void cancel(uint32_t agent, uint64_t request);
  static constexpr size_t kMaxMessage = 16 << 20;  // octets
  static constexpr size_t kMaxOctets = 256 << 20;

  // Refuses a Get or Set that no agent wants, and drops other MADs that none wants.
  void receive(const mad::Address& from, const mad::Mad& mad) override;

  // Unbinds the port from its driver: ends all sends with kFlushed from within this call (M14),
  // then removes every agent without notice.
  void leave();
  void arrive() { gone_ = false; }

  // Returns the number of sends whose end has not been reported.
  size_t sends_under_way() const { return sends_.size(); }
  // Returns the number of incomplete RMPP messages, and of complete ones whose segments are
  // acknowledged again.
  size_t reassemblies() const { return reassembly_.size(); }

 private:
  using End = MadUser::End;
  using Send = MadSends::Entry;
  using Phase = MadSends::Phase;

  // Limit of ends or tries per event. Work due at one instant is split over several events, so that
  // others run in between.
  static constexpr size_t kSlice = 1024;

  // Implements SaLimiter::Sender.
  void transmit(uint64_t id, TimeNs now) override;
  void expire(uint64_t id, TimeNs now) override;

  // Steps of a send, from its agent to its end.
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
