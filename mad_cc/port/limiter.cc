#include "mad_cc/port/limiter.h"

#include <algorithm>
#include <cassert>
#include <limits>

namespace rocefs {
namespace {

TimeNs from_ms(uint64_t milliseconds) {
  constexpr uint64_t kMaxMs = kNever / kMillisecond;
  return milliseconds > kMaxMs ? kNever : static_cast<TimeNs>(milliseconds) * kMillisecond;
}

}  // namespace

SaLimiter::Settings SaLimiter::defaults(MadSemantics semantics) {
  Settings settings = Settings::of(initial_values(kLimiterKnobs));
  settings.semantics = semantics;
  if (semantics != MadSemantics::kDoc) settings.queue_size = 65536;
  if (semantics == MadSemantics::kOfed25) settings.max_outstanding = settings.time_sa_mad_ms = 0;
  return settings;
}

bool SaLimiter::applies_to(const mad::Mad& mad, uint32_t timeout_ms) {
  return mad.mgmt_class() == mad::kSubnAdm && timeout_ms != 0 &&
         (mad.method() == mad::kGet || mad.method() == mad::kSet);
}

uint64_t SaLimiter::limit() const {
  constexpr uint64_t kNone = std::numeric_limits<uint64_t>::max();
  return settings_.max_outstanding == 0 ? kNone : settings_.max_outstanding;
}

// Computes the wait without overflow: a product of two 32-bit numbers and one.
TimeNs SaLimiter::longest_wait(const Request& request) const {
  switch (settings_.semantics) {
    case MadSemantics::kDoc:
      return from_ms(settings_.time_sa_mad_ms);
    case MadSemantics::kOfed4: {
      uint64_t patience = uint64_t{request.timeout_ms} * (uint64_t{request.retries} + 1);
      return from_ms(patience - std::min(patience, settings_.time_sa_mad_ms));
    }
    case MadSemantics::kOfed25:
      return kNever;
  }
  return kNever;
}

uint32_t SaLimiter::response_timeout_ms(const Request& request) const {
  if (settings_.semantics != MadSemantics::kOfed25 || settings_.time_sa_mad_ms == 0) {
    return request.timeout_ms;
  }
  uint64_t share = settings_.time_sa_mad_ms / (uint64_t{request.retries} + 1);
  constexpr uint64_t kMaxMs = std::numeric_limits<uint32_t>::max();
  return static_cast<uint32_t>(std::clamp<uint64_t>(share, 1, kMaxMs));
}

SaLimiter::Verdict SaLimiter::verdict(uint32_t agent) const {
  uint64_t outstanding = outstanding_, queued = queue_.size();
  if (settings_.semantics == MadSemantics::kOfed25) {
    auto own = agents_.find(agent);
    outstanding = own == agents_.end() ? 0 : own->second.outstanding;
    queued = own == agents_.end() ? 0 : own->second.queue.size();
  }
  bool may_overtake = settings_.semantics == MadSemantics::kOfed4;
  if (outstanding < limit() && (queued == 0 || may_overtake)) return Verdict::kSend;
  return queued < settings_.queue_size ? Verdict::kWait : Verdict::kRefuse;
}

SaLimiter::Verdict SaLimiter::offer(const Request& request, TimeNs now) {
  assert(!entries_.contains(request.id));
  Verdict verdict = this->verdict(request.agent);
  if (verdict == Verdict::kRefuse && unfinished() && !draining_) {
    make_room(request.agent, now);
    verdict = this->verdict(request.agent);
  }
  if (verdict == Verdict::kRefuse) {
    counters_.drops.add();
    return verdict;
  }
  Entry& entry = entries_[request.id];
  entry.id = request.id;
  entry.agent = request.agent;
  Agent& agent = agents_[request.agent];
  if (verdict == Verdict::kSend) {
    ++agent.outstanding;
    ++outstanding_;
    counters_.sent.add();
  } else {
    enqueue(entry, agent, longest_wait(request), now);
  }
  publish();
  return verdict;
}

// Finishes removals due at this instant, so that requests whose slice has not come yet do not take
// the place of new ones.
void SaLimiter::make_room(uint32_t id, TimeNs now) {
  if (unfinished_ == Unfinished::kExpiring) {
    if (!expire_one(now)) expire(now);  // no more of them: it is finished with that
    return;
  }
  bool own = settings_.semantics == MadSemantics::kOfed25;
  auto agent = agents_.find(id);
  if (settings_.semantics == MadSemantics::kOfed4 || (own && agent == agents_.end())) return;
  const Fifo& queue = own ? agent->second.queue : queue_;
  uint64_t outstanding = own ? agent->second.outstanding : outstanding_;
  if (queue.empty() || outstanding >= limit()) return;
  draining_ = true;
  release_next(*queue.begin()->second, now);
  draining_ = false;
}

void SaLimiter::enqueue(Entry& entry, Agent& agent, TimeNs wait, TimeNs now) {
  entry.order = ++last_order_;
  queue_[entry.order] = agent.queue[entry.order] = &entry;
  if (wait > kNever - now) return;
  entry.deadline = now + wait;
  deadlines_.emplace(entry.deadline, entry.order);
}

void SaLimiter::dequeue(Entry& entry, Agent& agent) {
  queue_.erase(entry.order);
  agent.queue.erase(entry.order);
  deadlines_.erase({entry.deadline, entry.order});
  entry.order = 0;
}

bool SaLimiter::forget(std::unordered_map<uint64_t, Entry>::iterator entry) {
  auto agent = agents_.find(entry->second.agent);
  bool outstanding = entry->second.order == 0;
  if (outstanding) {
    --agent->second.outstanding;
    --outstanding_;
  } else {
    dequeue(entry->second, agent->second);
  }
  if (agent->second.outstanding == 0 && agent->second.queue.empty()) agents_.erase(agent);
  entries_.erase(entry);
  publish();
  return outstanding;
}

void SaLimiter::finished(uint64_t id, TimeNs now) {
  auto entry = entries_.find(id);
  if (entry == entries_.end()) return;
  uint32_t agent = entry->second.agent;
  if (!forget(entry)) return;
  ++answers_;
  answered_.push_back(agent);
  drain(now);
}

void SaLimiter::clear_counters() {
  for (Counter* counter : {&counters_.drops, &counters_.sent, &counters_.expired}) counter->set(0);
}

void SaLimiter::clear() {
  entries_.clear();
  agents_.clear();
  queue_.clear();
  deadlines_.clear();
  outstanding_ = 0;
  answers_ = 0;
  answered_.clear();
  unfinished_ = Unfinished::kNothing;
  publish();
}

void SaLimiter::configure(const Settings& settings, TimeNs now) {
  settings_ = settings;
  answered_.clear();
  for (const auto& [id, agent] : agents_) answered_.push_back(id);
  drain(now);
}

void SaLimiter::publish() {
  counters_.outstanding.set(outstanding_);
  counters_.queued.set(queue_.size());
}

// Drains in a loop, not by recursion: a sender that ends requests from within transmit() makes more
// ready, and nested drains could be as deep as the queue is long. Unfinished work comes first:
// requests that are to expire are not sent instead.
void SaLimiter::drain(TimeNs now) {
  if (!draining_ && !unfinished()) drain_slice(now);
}

void SaLimiter::drain_slice(TimeNs now) {
  draining_ = true;
  uint64_t left = kSlice;
  for (; left > 0; --left) {
    Entry* entry = next_ready();
    if (!entry) break;
    release_next(*entry, now);
  }
  draining_ = false;
  if (left == 0) {
    unfinished_ = Unfinished::kDraining;
    unfinished_since_ = now;
    return;
  }
  unfinished_ = Unfinished::kNothing;
  answers_ = 0;
  answered_.clear();
}

void SaLimiter::release_next(Entry& entry, TimeNs now) {
  Agent& agent = agents_.at(entry.agent);
  dequeue(entry, agent);
  ++agent.outstanding;
  ++outstanding_;
  counters_.sent.add();
  publish();
  sender_.transmit(entry.id, now);
}

SaLimiter::Entry* SaLimiter::next_ready() {
  if (settings_.semantics == MadSemantics::kOfed25) return next_of_agents();
  if (settings_.semantics == MadSemantics::kOfed4) {
    // Release without an answer: with nothing outstanding, none would come.
    if (answers_ == 0 && outstanding_ > 0) return nullptr;
    if (answers_ > 0) --answers_;
  }
  bool ready = !queue_.empty() && outstanding_ < limit();
  return ready ? queue_.begin()->second : nullptr;
}

SaLimiter::Entry* SaLimiter::next_of_agents() {
  for (; !answered_.empty(); answered_.pop_front()) {
    auto it = agents_.find(answered_.front());
    if (it == agents_.end()) continue;
    const Agent& agent = it->second;
    if (!agent.queue.empty() && agent.outstanding < limit()) return agent.queue.begin()->second;
  }
  return nullptr;
}

TimeNs SaLimiter::next_expiry() const {
  if (unfinished()) return unfinished_since_;
  return deadlines_.empty() ? kNever : deadlines_.begin()->first;
}

void SaLimiter::expire(TimeNs now) {
  if (unfinished_ == Unfinished::kDraining) return drain_slice(now);
  if (unfinished_ == Unfinished::kNothing) newest_ = last_order_;
  uint64_t left = kSlice;
  while (left > 0 && expire_one(now)) --left;
  unfinished_ = left == 0 ? Unfinished::kExpiring : Unfinished::kNothing;
  unfinished_since_ = now;
  if (!answered_.empty()) drain(now);  // of answers that came meanwhile
}

bool SaLimiter::expire_one(TimeNs now) {
  if (deadlines_.empty()) return false;
  auto [deadline, order] = *deadlines_.begin();
  if (deadline > now || order > newest_) return false;
  uint64_t id = queue_.at(order)->id;
  forget(entries_.find(id));
  counters_.expired.add();
  sender_.expire(id, now);
  return true;
}

}  // namespace rocefs
