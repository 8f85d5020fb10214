#include "mad_cc/port/mad_port.h"

#include <algorithm>
#include <cerrno>

namespace rocefs {

using namespace mad;
namespace {

// Limit of ib_mad for the wait for an ACK.
constexpr uint32_t kMaxAckTimeoutMs = 2000;

bool goes_in_segments(const Mad& mad) {
  return has_rmpp(mad.mgmt_class()) && mad.rmpp_active() && mad.rmpp_type() == kRmppData;
}

// Checks as ib_create_send_mad() and ib_post_send_mad().
Result<void> check(const MadAgents::Agent& agent, const MadSend& send) {
  if (send.message.size() < data_offset(0))
    return errorf(EINVAL, "{} octets are too few for a MAD", send.message.size());
  Mad mad = first_mad(send.message);
  if (agent.registration.rmpp_version != 0 && !has_rmpp(mad.mgmt_class()))
    return errorf(EINVAL, "class {:#x} has no RMPP", mad.mgmt_class());
  bool segments = agent.port_rmpp() && goes_in_segments(mad);
  if (send.message.size() > kMadSize && !segments)
    return errorf(EINVAL, "{} octets are more than a MAD", send.message.size());
  if (segments && send.message.size() < data_offset(mad.mgmt_class()))
    return errorf(EINVAL, "{} octets are less than the class's headers", send.message.size());
  if (send.message.size() > MadPort::kMaxMessage)
    return errorf(ENOMEM, "a message of {} octets is too long", send.message.size());
  if (agent.sends.contains(send.request))
    return errorf(EINVAL, "request {} is in progress", send.request);
  if (agent.sends.size() >= agent.registration.max_sends)
    return errorf(ENOMEM, "{} requests are in progress", agent.sends.size());
  return {};
}

SaLimiter::Request offered(const MadSends::Entry& send) {
  return {send.id, send.agent, send.send.timeout_ms, send.send.retries};
}

}  // namespace

Result<void> MadPort::send(uint32_t id, MadSend message) {
  if (gone_) return Error{ENODEV, "the port's device is unbound"};
  MadAgents::Agent* agent = agents_.find(id);
  if (!agent) return errorf(EINVAL, "no such agent: {}", id);
  if (Result<void> checked = check(*agent, message); !checked) return checked;
  if (message.message.size() > kMaxOctets - sends_.octets())
    return errorf(ENOMEM, "messages of {} octets are in progress", sends_.octets());
  // TID by which the answer is routed back.
  if (!first_mad(message.message).is_response())
    wire::store32(&message.message[8], MadPort::high_tid(id));
  uint64_t request = message.request;
  Send& send = sends_.add(id, std::move(message));
  agent->sends[request] = send.id;
  if (agent->port_rmpp() && goes_in_segments(send.mad)) {
    uint32_t timeout_ms = send.send.timeout_ms == 0
                              ? kMaxAckTimeoutMs
                              : std::min(send.send.timeout_ms, kMaxAckTimeoutMs);
    send.segments = std::make_unique<RmppSender>(
        std::move(send.send.message),
        RmppSender::Patience{timeout_ms * kMillisecond, send.send.retries});
  }
  Message().swap(send.send.message);  // send.mad has it
  if (!SaLimiter::applies_to(send.mad, send.send.timeout_ms)) {
    start(send);
    return {};
  }
  send.limited = true;
  switch (limiter_.offer(offered(send), scheduler_.now())) {
    case SaLimiter::Verdict::kSend:
      start(send);
      break;
    case SaLimiter::Verdict::kWait:
      break;
    case SaLimiter::Verdict::kRefuse:
      send.limited = false;
      forget(send);
      arm_timer();
      return errorf(EBUSY, "{} SA requests are outstanding and {} wait",
                    limiter_.counters().outstanding.get(), limiter_.counters().queued.get());
  }
  arm_timer();
  return {};
}

void MadPort::start(Send& send) {
  if (send.segments) {
    send.phase = Phase::kTransmitting;
    sends_.expect_answer(send);  // ACKs
    return transmit_segments(send);
  }
  transmit_once(send);
  if (send.send.timeout_ms == 0) return end(send, End::kSent);
  sends_.expect_answer(send);
}

// Transmits a single MAD, the first time and each retry.
void MadPort::transmit_once(Send& send) {
  transmit_mad(send.send.to, send.mad);
  if (send.send.timeout_ms != 0) await_answer(send, send.send.timeout_ms);
}

void MadPort::await_answer(Send& send, uint32_t timeout_ms) {
  if (send.limited) timeout_ms = limiter_.response_timeout_ms(offered(send));
  send.phase = Phase::kAwaiting;
  sends_.set_deadline(send, scheduler_.now() + std::max(timeout_ms, 1u) * kMillisecond);
  arm_timer();
}

void MadPort::transmit_segments(Send& send) {
  while (std::optional<Mad> mad = send.segments->next(scheduler_.now()))
    transmit_mad(send.send.to, *mad);
  switch (send.segments->state()) {
    case RmppSender::State::kUnderWay:
      sends_.set_deadline(send, send.segments->deadline());
      return arm_timer();
    case RmppSender::State::kDone:
      if (send.send.timeout_ms == 0) return end(send, End::kSent);
      send.retries_left = 0;  // all of it is there: the answer may only be late
      return await_answer(send, send.send.timeout_ms);
    case RmppSender::State::kStopped:
      return end(send, End::kFailed);
    case RmppSender::State::kTimedOut:
      return end(send, End::kTimedOut);
  }
}

// Drops MADs to the wrong QP, as the receiver would (13.5: SMPs at QP 0, all others at QP 1).
void MadPort::transmit_mad(const Address& to, const Mad& mad) {
  if (to.qpn == (is_smp(mad.mgmt_class()) ? 0u : 1u)) carrier_.transmit(*this, to, mad);
}

void MadPort::finish_in_limiter(Send& send) {
  if (!std::exchange(send.limited, false)) return;
  limiter_.finished(send.id, scheduler_.now());
}

void MadPort::end(Send& send, End how) {
  send.phase = Phase::kEnded;
  send.end = how;
  sends_.set_deadline(send, kNever);
  sends_.expect_nothing(send);
  ended_.push_back(send.id);
  if (!report_.scheduled()) scheduler_.at(report_, scheduler_.now());
  finish_in_limiter(send);
  arm_timer();
}

void MadPort::forget(Send& send) {
  finish_in_limiter(send);
  if (MadAgents::Agent* agent = agents_.find(send.agent)) agent->sends.erase(send.send.request);
  sends_.erase(send);
}

void MadPort::remove_agent(uint32_t id) {
  MadAgents::Agent* agent = agents_.find(id);
  if (!agent) return;
  // Queued sends first: else the end of an outstanding one would transmit them.
  std::vector<std::pair<bool, uint64_t>> theirs;
  for (const auto& [request, send] : agent->sends)
    theirs.push_back({sends_.find(send)->phase != Phase::kQueued, send});
  std::sort(theirs.begin(), theirs.end());
  agents_.remove(id);
  for (const auto& [out, send] : theirs) forget(*sends_.find(send));
  reassembly_.remove_agent(id);
  arm_timer();
}

void MadPort::leave() {
  gone_ = true;
  limiter_.clear();
  reassembly_.clear();
  ended_.clear();
  // Copy before the calls: users may remove agents and send from within them.
  struct Flushed {
    uint32_t agent;
    uint64_t request;
    End end;
  };
  std::vector<Flushed> flushed;
  for (uint64_t id : sends_.ids()) {
    const Send& send = *sends_.find(id);
    End how = send.phase == Phase::kEnded ? send.end : End::kFlushed;
    flushed.push_back({send.agent, send.send.request, how});
  }
  sends_.clear();
  agents_.clear_sends();
  arm_timer();
  std::vector<uint32_t> all = agents_.ids();
  for (const Flushed& send : flushed) {
    if (MadAgents::Agent* agent = agents_.find(send.agent))
      agent->user->ended(send.agent, send.request, send.end);
  }
  for (uint32_t agent : all) remove_agent(agent);
}

void MadPort::arm_timer() {
  TimeNs next =
      std::min({sends_.next_deadline(), reassembly_.next_deadline(), limiter_.next_expiry()});
  if (next != kNever) next = std::max(next, scheduler_.now());
  if (next == timer_.due()) return;
  if (next == kNever)
    scheduler_.cancel(timer_);
  else
    scheduler_.at(timer_, next);
}

void MadPort::on_timer(TimeNs now) {
  if (limiter_.next_expiry() <= now) limiter_.expire(now);
  if (limiter_.unfinished()) return arm_timer();
  for (size_t left = kSlice; left > 0; --left) {
    Send* send = sends_.due(now);
    if (!send) break;
    on_timeout(*send);
  }
  overdue_ = sends_.due(now) ? now : -1;
  if (overdue_ == now) return arm_timer();
  for (const Reassembly::Expired& expired : reassembly_.expire(now))
    reply(expired.to, expired.abort);
  arm_timer();
}

void MadPort::on_timeout(Send& send) {
  if (send.phase == Phase::kTransmitting) return transmit_segments(send);
  if (send.retries_left == 0) return end(send, End::kTimedOut);
  --send.retries_left;
  transmit_once(send);
}

// Answers that arrive between the slices of time-outs are later than these: time out the sends they
// match first. The bound is for a sender that reuses one TID.
MadPort::Send* MadPort::match(uint32_t agent, uint16_t lid, const Mad& mad) {
  constexpr int kMaxOfOneTid = 64;
  for (int i = 0; i < kMaxOfOneTid; ++i) {
    Send* send = sends_.match(agent, lid, mad);
    if (!send || send->deadline > overdue_) return send;
    on_timeout(*send);
  }
  return nullptr;
}

void MadPort::report_ends(TimeNs now) {
  // Sends that end meanwhile are reported in a later event.
  for (size_t left = std::min(ended_.size(), kSlice); left != 0 && !ended_.empty(); --left) {
    Send* send = sends_.find(ended_.front());
    ended_.pop_front();
    if (!send) continue;
    uint32_t id = send->agent;
    uint64_t request = send->send.request;
    End how = send->end;
    forget(*send);
    agents_.find(id)->user->ended(id, request, how);
  }
  if (!ended_.empty() && !report_.scheduled()) scheduler_.at(report_, now);
}

MadPort::MadPort(MadCarrier& carrier, Scheduler& scheduler)
    : carrier_(carrier), scheduler_(scheduler) {}

void MadPort::configure_limiter(const SaLimiter::Settings& settings) {
  limiter_.configure(settings, scheduler_.now());
  arm_timer();
}

Result<uint32_t> MadPort::add_agent(const MadRegistration& registration, MadUser& user) {
  if (gone_) return Error{ENODEV, "the port's device is unbound"};
  return agents_.add(registration, user);
}

void MadPort::cancel(uint32_t id, uint64_t request) {
  MadAgents::Agent* agent = agents_.find(id);
  if (!agent) return;
  auto found = agent->sends.find(request);
  if (found == agent->sends.end()) return;
  Send& send = *sends_.find(found->second);
  if (send.phase != Phase::kEnded) end(send, End::kFlushed);
}

void MadPort::transmit(uint64_t id, TimeNs) {
  if (Send* send = sends_.find(id)) start(*send);
}

void MadPort::expire(uint64_t id, TimeNs) {
  Send* send = sends_.find(id);
  if (!send) return;
  send->limited = false;
  end(*send, End::kExpired);
}

}  // namespace rocefs
