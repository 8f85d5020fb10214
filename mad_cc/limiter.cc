#include "mad_cc/limiter.h"

#include <algorithm>
#include <cassert>
#include <limits>

namespace rocefs {
namespace {

TimeNs from_ms(uint64_t milliseconds) {
  constexpr uint64_t kLongest = kNever / kMillisecond;
  return milliseconds > kLongest ? kNever : static_cast<TimeNs>(milliseconds) * kMillisecond;
}

}  // namespace

SaLimiter::Settings SaLimiter::defaults(MadSemantics semantics) {
  switch (semantics) {
    case MadSemantics::kDoc:
      return {semantics, 16, 16, 20};
    case MadSemantics::kOfed4:
      return {semantics, 16, 65536, 20};
    case MadSemantics::kOfed25:
      return {semantics, 0, 65536, 0};
  }
  return {};
}

bool SaLimiter::concerns(const mad::Mad& mad, uint32_t timeout_ms) {
  return mad.mgmt_class() == mad::kSubnAdm && timeout_ms != 0 &&
         (mad.method() == mad::kGet || mad.method() == mad::kSet);
}

uint64_t SaLimiter::limit() const {
  constexpr uint64_t kNone = std::numeric_limits<uint64_t>::max();
  return settings_.max_outstanding == 0 ? kNone : settings_.max_outstanding;
}

// A product of two 32-bit numbers and one: it fits.
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
  constexpr uint64_t kLongest = std::numeric_limits<uint32_t>::max();
  return static_cast<uint32_t>(std::clamp<uint64_t>(share, 1, kLongest));
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

void SaLimiter::over(uint64_t id, TimeNs now) {
  auto entry = entries_.find(id);
  if (entry == entries_.end()) return;
  uint32_t agent = entry->second.agent;
  if (!forget(entry)) return;
  ++answers_;
  answered_.push_back(agent);
  drain(now);
}

void SaLimiter::clear() {
  entries_.clear();
  agents_.clear();
  queue_.clear();
  deadlines_.clear();
  outstanding_ = 0;
  publish();
}

void SaLimiter::configure(const Settings& settings, TimeNs now) {
  settings_ = settings;
  for (const auto& [id, agent] : agents_) answered_.push_back(id);
  drain(now);
}

void SaLimiter::publish() {
  counters_.outstanding.set(outstanding_);
  counters_.queued.set(queue_.size());
}

// A sender that ends requests from within transmit() makes more ready: they go from here as well,
// not from a drain within the drain, which could be nested as deep as the queue is long.
void SaLimiter::drain(TimeNs now) {
  if (draining_) return;
  draining_ = true;
  while (Entry* entry = next_ready()) {
    Agent& agent = agents_.at(entry->agent);
    dequeue(*entry, agent);
    ++agent.outstanding;
    ++outstanding_;
    counters_.sent.add();
    publish();
    sender_.transmit(entry->id, now);
  }
  answers_ = 0;
  answered_.clear();
  draining_ = false;
}

SaLimiter::Entry* SaLimiter::next_ready() {
  if (settings_.semantics == MadSemantics::kOfed25) return next_of_agents();
  if (settings_.semantics == MadSemantics::kOfed4) {
    // With nothing outstanding no answer will come for which one could go.
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
  return deadlines_.empty() ? kNever : deadlines_.begin()->first;
}

void SaLimiter::expire(TimeNs now) {
  uint64_t newest = last_order_;
  while (!deadlines_.empty()) {
    auto [deadline, order] = *deadlines_.begin();
    if (deadline > now || order > newest) return;
    uint64_t id = queue_.at(order)->id;
    forget(entries_.find(id));
    counters_.expired.add();
    sender_.expire(id, now);
  }
}

}  // namespace rocefs
