// What a MadPort is made of; of mad_port.cc and mad_port_receive.cc alone.
#pragma once

#include <deque>

#include "mad_cc/port/mad_agents.h"
#include "mad_cc/port/mad_port.h"
#include "mad_cc/port/mad_sends.h"
#include "mad_cc/port/reassembly.h"

namespace rocefs {

struct MadPort::Impl {
  using End = MadUser::End;
  using Send = MadSends::Entry;
  using Phase = MadSends::Phase;

  // What is due at one instant is done in as many events, each with so many ends or tries: others
  // get their turn in between.
  static constexpr size_t kSlice = 1024;

  Impl(MadPort& p, MadCarrier& c, Scheduler& s, SaLimiter& l)
      : port(p), carrier(c), scheduler(s), limiter(l) {}

  // The way of a send: from its agent to its end.
  Result<void> send(uint32_t agent, MadSend send);
  void start(Send& send);
  void transmit(const mad::Address& to, const mad::Mad& mad);
  void transmit_once(Send& send);
  void transmit_segments(Send& send);
  void await_answer(Send& send, uint32_t timeout_ms);
  void over(Send& send);
  void end(Send& send, End end);
  void forget(Send& send);

  void receive(const mad::Address& from, const mad::Mad& mad);
  void reply(const mad::Address& from, const mad::Mad& mad);
  void receive_segment(uint32_t agent, const mad::Address& from, const mad::Mad& mad);
  void receive_answer_to_segments(uint32_t agent, const mad::Address& from, const mad::Mad& mad);
  void deliver(uint32_t agent, const mad::Address& from, const mad::Mad& mad, mad::Message message);

  void remove_agent(uint32_t agent);
  void leave();
  void arm();
  void on_time(TimeNs now);
  void on_timeout(Send& send);
  Send* match(uint32_t agent, uint16_t lid, const mad::Mad& mad);
  void tell(TimeNs now);

  MadPort& port;
  MadCarrier& carrier;
  Scheduler& scheduler;
  SaLimiter& limiter;
  MadAgents agents;
  MadSends sends;
  Reassembly reassembly;
  std::deque<uint64_t> ended;  // whose users are to be told; some are forgotten
  bool gone = false;
  // Up to when sends' time is up though not all have had their turn: of this instant, or long past.
  TimeNs overdue = -1;
  Event timer = event_of<&Impl::on_time>(this);
  Event telling = event_of<&Impl::tell>(this);
};

}  // namespace rocefs
