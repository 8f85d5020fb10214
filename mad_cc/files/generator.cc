#include "mad_cc/files/generator.h"

#include <cerrno>

namespace rocefs {
namespace {

constexpr uint8_t kBaseVersion = 1, kSaClassVersion = 2;  // 13.4.2, 15.2.1
constexpr uint16_t kClassPortInfo = 0x0001;               // 13.4.8.1

mad::Mad class_port_info(uint64_t number) {
  mad::Mad mad;
  mad.bytes[0] = kBaseVersion;
  mad.bytes[1] = mad::kSubnAdm;
  mad.bytes[2] = kSaClassVersion;
  mad.set_method(mad::kGet);
  mad.set_tid(number + 1);
  wire::store16(&mad.bytes[16], kClassPortInfo);
  mad.bytes[24] = 1;  // RMPP version, of all MADs of the class (13.6.2.1)
  return mad;
}

}  // namespace

// Counts first and subtracts then: a counter that moves meanwhile makes the result too large by
// one, never negative.
uint64_t Burst::waiting() const {
  uint64_t over =
      answered.get() + busy.get() + timed_out.get() + expired.get() + refused.get() + flushed.get();
  return spec.count - over;
}

std::string Burst::text() const {
  uint64_t now[] = {answered.get(), busy.get(),    timed_out.get(),
                    expired.get(),  refused.get(), flushed.get()};
  uint64_t left = spec.count;
  for (uint64_t count : now) left -= count;
  return fmt::format(
      "burst {} port={} timeout={}ms retries={}: answered {} busy {} timed_out {} expired {} "
      "refused {} flushed {} waiting {}",
      spec.count, port, spec.timeout_ms, spec.retries, now[0], now[1], now[2], now[3], now[4],
      now[5], left);
}

Generator::Generator(Scheduler& scheduler, Outstanding& outstanding)
    : scheduler_(scheduler),
      outstanding_(outstanding),
      slice_(event_of<&Generator::send_slice>(this)),
      finish_(event_of<&Generator::finish>(this)) {}

Generator::~Generator() {
  stop();
}

Result<void> Generator::start(std::shared_ptr<Burst> burst, MadPort& port,
                              uint16_t administrator_lid) {
  if (burst_ && burst_->waiting() == 0) finish(scheduler_.now());
  if (burst_) return Error{EBUSY, "a burst is in progress"};
  port_ = &port;
  administrator_lid_ = administrator_lid;
  if (Result<void> added = add_agent(); !added) return added;
  burst_ = std::move(burst);
  next_ = 0;
  ++outstanding_.flows;
  send_slice(scheduler_.now());
  return {};
}

Result<void> Generator::add_agent() {
  MadRegistration registration;
  Result<uint32_t> agent = port_->add_agent(registration, *this);
  if (!agent) return agent.error();
  agents_.push_back(*agent);
  return {};
}

void Generator::send_slice(TimeNs) {
  uint64_t end = std::min(next_ + kSlice, burst_->spec.count);
  while (next_ < end) {
    Result<void> sent = send_next();
    ++next_;
    if (sent) continue;
    if (sent.error().code == EBUSY) {
      burst_->refused.add();
      continue;
    }
    burst_->flushed.add(burst_->spec.count - next_ + 1);
    next_ = end = burst_->spec.count;
  }
  if (next_ < burst_->spec.count) scheduler_.at(slice_, scheduler_.now());
  finish_if_complete();
}

// Sends by the newest agent, and adds one when that has its limit of requests in progress.
Result<void> Generator::send_next() {
  mad::Mad mad = class_port_info(next_);
  MadSend send{next_, {}, burst_->spec.timeout_ms, burst_->spec.retries, mad::message_of(mad)};
  send.to.lid = administrator_lid_;
  send.to.qkey = mad::kQkey;
  Result<void> sent = port_->send(agents_.back(), send);
  if (sent || sent.error().code != ENOMEM) return sent;
  if (Result<void> added = add_agent(); !added) return added;
  return port_->send(agents_.back(), std::move(send));
}

void Generator::received(uint32_t, std::optional<uint64_t> request, const mad::Address&,
                         mad::Message message) {
  if (!request || !burst_) return;
  bool busy = mad::first_mad(message).status() == mad::kBusy;
  (busy ? burst_->busy : burst_->answered).add();
  finish_if_complete();
}

void Generator::ended(uint32_t, uint64_t, End end) {
  if (!burst_) return;
  switch (end) {
    case End::kTimedOut:
      burst_->timed_out.add();
      break;
    case End::kExpired:
      burst_->expired.add();
      break;
    case End::kFlushed:
    case End::kSent:    // each request expects an answer,
    case End::kFailed:  // and none goes by RMPP
      burst_->flushed.add();
      break;
  }
  finish_if_complete();
}

// Schedules the end when all is counted; not at once, because the port, which owns the agents, may
// be the caller.
void Generator::finish_if_complete() {
  if (burst_->waiting() == 0 && !finish_.scheduled()) scheduler_.at(finish_, scheduler_.now());
}

void Generator::stop() {
  if (!burst_) return;
  burst_->flushed.add(burst_->waiting());
  finish(scheduler_.now());
}

void Generator::finish(TimeNs) {
  scheduler_.cancel(slice_);
  scheduler_.cancel(finish_);
  for (uint32_t agent : agents_) port_->remove_agent(agent);
  agents_.clear();
  burst_ = nullptr;
  --outstanding_.flows;
}

}  // namespace rocefs
