#include "mad_cc/port/mad_port.h"

#include <algorithm>
#include <cerrno>

#include "mad_cc/port/mad_port_impl.h"

namespace rocefs {

using namespace mad;
using End = MadUser::End;
using Phase = MadSends::Phase;
using Send = MadSends::Entry;

namespace {

// ib_mad waits no longer for an ACK.
constexpr uint32_t kMaxAckTimeoutMs = 2000;

bool goes_in_segments(const Mad& mad) {
  return has_rmpp(mad.mgmt_class()) && mad.rmpp_active() && mad.rmpp_type() == kRmppData;
}

// As ib_create_send_mad() and ib_post_send_mad() check.
Result<void> check(const MadAgents::Agent& agent, const MadSend& send) {
  if (send.message.size() < data_offset(0))
    return errorf(EINVAL, "{} octets are no MAD", send.message.size());
  Mad mad = first_mad(send.message);
  if (agent.registration.rmpp_version != 0 && !has_rmpp(mad.mgmt_class()))
    return errorf(EINVAL, "class {:#x} has no RMPP", mad.mgmt_class());
  bool segments = agent.port_rmpp() && goes_in_segments(mad);
  if (send.message.size() > kMadSize && !segments)
    return errorf(EINVAL, "{} octets are more than a MAD", send.message.size());
  if (segments && send.message.size() < data_offset(mad.mgmt_class()))
    return errorf(EINVAL, "{} octets are less than the class's headers", send.message.size());
  if (send.message.size() > MadPort::kMaxMessage)
    return errorf(ENOMEM, "a message of {} octets", send.message.size());
  if (agent.sends.contains(send.request))
    return errorf(EINVAL, "request {} is under way", send.request);
  if (agent.sends.size() >= agent.registration.max_sends)
    return errorf(ENOMEM, "{} requests are under way", agent.sends.size());
  return {};
}

SaLimiter::Request offered(const Send& send) {
  return {send.id, send.agent, send.send.timeout_ms, send.send.retries};
}

}  // namespace

Result<void> MadPort::Impl::send(uint32_t id, MadSend message) {
  MadAgents::Agent* agent = agents.find(id);
  if (!agent) return errorf(EINVAL, "{} is no agent", id);
  if (Result<void> checked = check(*agent, message); !checked) return checked;
  if (message.message.size() > kMaxOctets - sends.octets())
    return errorf(ENOMEM, "messages of {} octets are under way", sends.octets());
  // Answers find their way back by it.
  if (!first_mad(message.message).is_response())
    wire::store32(&message.message[8], MadPort::high_tid(id));
  uint64_t request = message.request;
  Send& send = sends.add(id, std::move(message));
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
  if (!SaLimiter::concerns(send.mad, send.send.timeout_ms)) {
    start(send);
    return {};
  }
  send.limited = true;
  switch (limiter.offer(offered(send), scheduler.now())) {
    case SaLimiter::Verdict::kSend:
      start(send);
      break;
    case SaLimiter::Verdict::kWait:
      break;
    case SaLimiter::Verdict::kRefuse:
      send.limited = false;
      forget(send);
      arm();
      return errorf(EBUSY, "{} SA requests are outstanding and {} wait",
                    limiter.counters().outstanding.get(), limiter.counters().queued.get());
  }
  arm();
  return {};
}

void MadPort::Impl::start(Send& send) {
  if (send.segments) {
    send.phase = Phase::kTransmitting;
    sends.expect_answer(send);  // ACKs
    return transmit_segments(send);
  }
  transmit_once(send);
  if (send.send.timeout_ms == 0) return end(send, End::kSent);
  sends.expect_answer(send);
}

// The first time and each time after.
void MadPort::Impl::transmit_once(Send& send) {
  transmit(send.send.to, send.mad);
  if (send.send.timeout_ms != 0) await_answer(send, send.send.timeout_ms);
}

void MadPort::Impl::await_answer(Send& send, uint32_t timeout_ms) {
  if (send.limited) timeout_ms = limiter.response_timeout_ms(offered(send));
  send.phase = Phase::kAwaiting;
  sends.set_deadline(send, scheduler.now() + std::max(timeout_ms, 1u) * kMillisecond);
  arm();
}

void MadPort::Impl::transmit_segments(Send& send) {
  while (std::optional<Mad> mad = send.segments->next(scheduler.now()))
    transmit(send.send.to, *mad);
  switch (send.segments->state()) {
    case RmppSender::State::kUnderWay:
      sends.set_deadline(send, send.segments->deadline());
      return arm();
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

// What arrives at the wrong QP is discarded there (13.5: SMPs at QP 0, all others at QP 1).
void MadPort::Impl::transmit(const Address& to, const Mad& mad) {
  if (to.qpn == (is_smp(mad.mgmt_class()) ? 0u : 1u)) carrier.transmit(port, to, mad);
}

void MadPort::Impl::over(Send& send) {
  if (!std::exchange(send.limited, false)) return;
  limiter.over(send.id, scheduler.now());
}

void MadPort::Impl::end(Send& send, End how) {
  send.phase = Phase::kEnded;
  send.end = how;
  sends.set_deadline(send, kNever);
  sends.expect_nothing(send);
  ended.push_back(send.id);
  if (!telling.scheduled()) scheduler.at(telling, scheduler.now());
  over(send);
  arm();
}

void MadPort::Impl::forget(Send& send) {
  over(send);
  if (MadAgents::Agent* agent = agents.find(send.agent)) agent->sends.erase(send.send.request);
  sends.erase(send);
}

void MadPort::Impl::remove_agent(uint32_t id) {
  MadAgents::Agent* agent = agents.find(id);
  if (!agent) return;
  // What waits for the limiter goes first, or it would be sent in the place of what does not.
  std::vector<std::pair<bool, uint64_t>> theirs;
  for (const auto& [request, send] : agent->sends)
    theirs.push_back({sends.find(send)->phase != Phase::kQueued, send});
  std::sort(theirs.begin(), theirs.end());
  agents.remove(id);
  for (const auto& [out, send] : theirs) forget(*sends.find(send));
  reassembly.remove_agent(id);
  arm();
}

void MadPort::Impl::leave() {
  gone = true;
  limiter.clear();
  reassembly.clear();
  ended.clear();
  // Users may remove agents and send from within: what is told is taken out first.
  struct Flushed {
    uint32_t agent;
    uint64_t request;
    End end;
  };
  std::vector<Flushed> flushed;
  for (uint64_t id : sends.ids()) {
    const Send& send = *sends.find(id);
    End how = send.phase == Phase::kEnded ? send.end : End::kFlushed;
    flushed.push_back({send.agent, send.send.request, how});
  }
  sends.clear();
  agents.clear_sends();
  arm();
  std::vector<uint32_t> all = agents.ids();
  for (const Flushed& send : flushed) {
    if (MadAgents::Agent* agent = agents.find(send.agent))
      agent->user->ended(send.agent, send.request, send.end);
  }
  for (uint32_t agent : all) remove_agent(agent);
}

void MadPort::Impl::arm() {
  TimeNs next =
      std::min({sends.next_deadline(), reassembly.next_deadline(), limiter.next_expiry()});
  if (next != kNever) next = std::max(next, scheduler.now());
  if (next == timer.due()) return;
  if (next == kNever)
    scheduler.cancel(timer);
  else
    scheduler.at(timer, next);
}

void MadPort::Impl::on_time(TimeNs now) {
  if (limiter.next_expiry() <= now) limiter.expire(now);
  if (limiter.unfinished()) return arm();
  for (size_t left = kSlice; left > 0; --left) {
    Send* send = sends.due(now);
    if (!send) break;
    on_timeout(*send);
  }
  overdue = sends.due(now) ? now : -1;
  if (overdue == now) return arm();
  for (const Reassembly::Expired& expired : reassembly.expire(now))
    reply(expired.to, expired.abort);
  arm();
}

void MadPort::Impl::on_timeout(Send& send) {
  if (send.phase == Phase::kTransmitting) return transmit_segments(send);
  if (send.retries_left == 0) return end(send, End::kTimedOut);
  --send.retries_left;
  transmit_once(send);
}

// An answer that comes between the slices of time-outs is later than they: those that it is for
// have their turn first. More of one TID than this are its sender's own fault.
Send* MadPort::Impl::match(uint32_t agent, uint16_t lid, const Mad& mad) {
  constexpr int kMaxOfOneTid = 64;
  for (int i = 0; i < kMaxOfOneTid; ++i) {
    Send* send = sends.match(agent, lid, mad);
    if (!send || send->deadline > overdue) return send;
    on_timeout(*send);
  }
  return nullptr;
}

void MadPort::Impl::tell(TimeNs now) {
  // Those that end meanwhile are told in a later event.
  for (size_t left = std::min(ended.size(), kSlice); left != 0 && !ended.empty(); --left) {
    Send* send = sends.find(ended.front());
    ended.pop_front();
    if (!send) continue;
    uint32_t id = send->agent;
    uint64_t request = send->send.request;
    End how = send->end;
    forget(*send);
    agents.find(id)->user->ended(id, request, how);
  }
  if (!ended.empty() && !telling.scheduled()) scheduler.at(telling, now);
}

MadPort::MadPort(MadCarrier& carrier, Scheduler& scheduler)
    : limiter_(new SaLimiter(*this)),
      impl_(std::make_unique<Impl>(*this, carrier, scheduler, *limiter_)) {}
MadPort::~MadPort() = default;

void MadPort::configure_limiter(const SaLimiter::Settings& settings) {
  limiter_->configure(settings, impl_->scheduler.now());
  impl_->arm();
}

Result<uint32_t> MadPort::add_agent(const MadRegistration& registration, MadUser& user) {
  if (impl_->gone) return Error{ENODEV, "the port has gone"};
  return impl_->agents.add(registration, user);
}
void MadPort::remove_agent(uint32_t agent) {
  impl_->remove_agent(agent);
}

Result<void> MadPort::send(uint32_t agent, MadSend send) {
  if (impl_->gone) return Error{ENODEV, "the port has gone"};
  return impl_->send(agent, std::move(send));
}

void MadPort::cancel(uint32_t id, uint64_t request) {
  MadAgents::Agent* agent = impl_->agents.find(id);
  if (!agent) return;
  auto found = agent->sends.find(request);
  if (found == agent->sends.end()) return;
  Send& send = *impl_->sends.find(found->second);
  if (send.phase != Phase::kEnded) impl_->end(send, End::kFlushed);
}

void MadPort::receive(const Address& from, const Mad& mad) {
  impl_->receive(from, mad);
}

void MadPort::leave() {
  impl_->leave();
}
void MadPort::arrive() {
  impl_->gone = false;
}
size_t MadPort::sends_under_way() const {
  return impl_->sends.size();
}
size_t MadPort::reassemblies() const {
  return impl_->reassembly.size();
}

void MadPort::transmit(uint64_t id, TimeNs) {
  if (Send* send = impl_->sends.find(id)) impl_->start(*send);
}

void MadPort::expire(uint64_t id, TimeNs) {
  Send* send = impl_->sends.find(id);
  if (!send) return;
  send->limited = false;
  impl_->end(*send, End::kExpired);
}

}  // namespace rocefs
