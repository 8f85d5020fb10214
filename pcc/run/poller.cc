#include "pcc/run/poller.h"

#include <fmt/format.h>

#include <algorithm>

#include "pcc/api/register_access.h"

namespace rocefs {
namespace {

// Limit of agenda entries, stale ones included: an engine whose queue pairs come and go while its
// clock stands still would fill memory.
constexpr size_t kMaxEntries = 4 * ROCEFS_MAX_QPS;

// The call in progress in one word: its number, the slot, the queue pair.
constexpr unsigned kNumberShift = 24, kSlotShift = 20;
static_assert(ROCEFS_FIRST_QPN + ROCEFS_MAX_QPS <= 1 << kSlotShift);
static_assert(MANGO_PCC_MAX_SLOTS == 1 << (kNumberShift - kSlotShift));

// Time of the call after one that was due at `due`; calls that a busy poller missed are left out.
TimeNs next_call(TimeNs due, TimeNs now, TimeNs interval) {
  return now - due < interval ? due + interval : now + interval;
}

}  // namespace

PccPoller::PccPoller(PccRun& run, unsigned index)
    : run_(run),
      index_(index),
      events_seen_(load_announced(run.signals.events_written)),
      qps_((ROCEFS_MAX_QPS + run.pollers - 1) / run.pollers) {}

void PccPoller::scan() {
  changes_seen_ = load_announced(run_.signals.changes);
  for (uint32_t line = index_; line < ROCEFS_MAX_QPS; line += run_.pollers) {
    bool active = load_word(run_.signals.active[line / 64]) >> line % 64 & 1;
    uint32_t place = line / run_.pollers;
    std::unique_ptr<PccQp>& qp = qps_[place];
    if (!active && !qp) continue;
    const rocefs_qp_signals& signals = run_.signals.qps[line];
    uint32_t generation = load_announced(signals.generation);
    if (!active || generation % 2 == 0) {
      qp.reset();
    } else if (!qp || qp->generation() != generation) {
      qp = std::make_unique<PccQp>(line + ROCEFS_FIRST_QPN, generation, signals,
                                   run_.control.qps[line], run_.slot, *run_.slots.at(run_.slot),
                                   run_.seed);
      qp->place = place;
      fresh_.push_back(place);
    }
  }
  find_listeners();
}

// Gives new events to the queue pairs of this poller. An entry that the engine may have begun to
// overwrite while it was read is lost, and so are those before it.
void PccPoller::take_events() {
  uint64_t end = load_announced(run_.signals.events_written);
  if (!listens_) {
    events_seen_ = end;
    return;
  }
  constexpr uint64_t kKept = ROCEFS_EVENT_ENTRIES - 1;
  for (uint64_t number = events_seen_; number < end; ++number) {
    const rocefs_qp_event& entry = run_.signals.events[number % ROCEFS_EVENT_ENTRIES];
    rocefs_qp_event event{};
    auto* from = reinterpret_cast<const uint64_t*>(&entry);
    auto* to = reinterpret_cast<uint64_t*>(&event);
    for (size_t i = 0; i < sizeof event / sizeof *to; ++i) to[i] = load_announced(from[i]);
    uint64_t written = load_announced(run_.signals.events_written);
    if (written - number > kKept) {
      uint64_t oldest = written - kKept;
      overwritten_ += oldest - number;
      run_.note_overwritten(overwritten_);
      end = written;
      number = oldest - 1;
      continue;
    }
    uint32_t line = event.qpn - ROCEFS_FIRST_QPN;
    if (line >= ROCEFS_MAX_QPS || line % run_.pollers != index_) continue;
    PccQp* qp = find(line);
    if (!qp || !qp->wants_events() || qp->generation() != event.generation) continue;
    if (!qp->add_event(event)) run_.note_dropped();
    wake(*qp);
  }
  events_seen_ = end;
}

// Ends the sleep of a queue pair without events.
void PccPoller::wake(PccQp& qp) {
  if (qp.fresh || qp.next <= qp.due) return;
  qp.next = qp.due;
  schedule(qp);
}

void PccPoller::find_listeners() {
  listens_ = false;
  for_each([this](PccQp& qp) { listens_ |= qp.wants_events(); });
}

inline void PccPoller::schedule(PccQp& qp) {
  if (qp.next == kNever) return;
  agenda_.push(qp.next, qp.place);
}

void PccPoller::schedule_all() {
  agenda_.clear();
  for_each([this](PccQp& qp) {
    if (!qp.fresh) schedule(qp);
  });
}

// Schedules queue pairs that were found outside poll(), one interval from now.
void PccPoller::start_fresh(TimeNs now) {
  for (uint32_t place : fresh_) {
    PccQp* qp = qps_[place].get();
    if (!qp || !qp->fresh) continue;
    qp->fresh = false;
    qp->due = qp->next = now + run_.interval;
    schedule(*qp);
  }
  fresh_.clear();
}

// Takes the first queue pair from the agenda if its time has come, else null.
inline PccQp* PccPoller::take_due(TimeNs now) {
  while (const PccAgenda::Entry* first = agenda_.front()) {
    PccQp* qp = qps_[first->place].get();
    bool stale = !qp || qp->fresh || qp->next != first->at;
    if (!stale && first->at > now) return nullptr;
    agenda_.pop();
    if (!stale) return qp;
  }
  return nullptr;
}

void PccPoller::apply(PccQp& qp, unsigned slot) {
  qp.due = std::max(qp.due, last_now_);  // it may have slept
  qp.apply(slot, *run_.slots.at(slot));
  listens_ |= qp.wants_events();
  if (!qp.fresh) schedule(qp);
}

void PccPoller::change_interval(TimeNs old) {
  for_each([&](PccQp& qp) {
    qp.due += run_.interval - old;
    qp.next = std::min(qp.next, qp.due);
  });
  schedule_all();
}

TimeNs PccPoller::poll(TimeNs now) {
  for (unsigned wanted = run_.wanted; wanted > 0; wanted = run_.wanted) run_.wanted.wait(wanted);
  std::lock_guard guard(lock_);
  if (run_.damaged()) return kNever;
  if (load_announced(run_.signals.changes) != changes_seen_) scan();
  // Engine time can go back.
  if (now < last_now_) {
    for_each([&](PccQp& qp) { qp.due = qp.next = std::min(qp.due, now + run_.interval); });
    schedule_all();
  }
  last_now_ = now;
  take_events();
  start_fresh(now);
  if (agenda_.size() > kMaxEntries) schedule_all();
  PccCall call(run_, index_, reads_, now);
  while (PccQp* qp = take_due(now)) {
    step(*qp, call);
    if (run_.damaged()) return kNever;
    schedule(*qp);
  }
  const PccAgenda::Entry* first = agenda_.front();
  TimeNs next = first ? first->at : kNever;
  // Under the virtual clock the engine itself sees that an event comes.
  bool looks = listens_ && load_word(run_.signals.virtual_clock) == 0;
  return looks ? std::min(next, now + run_.interval) : next;
}

void PccPoller::step(PccQp& qp, PccCall& call) {
  if (qp.rests() && !call.traced()) return count_rest(qp, call);
  const TimeNs now = call.now(), interval = run_.interval;
  const PccAlgorithm& algorithm = *run_.slots.at(qp.slot());
  qp.begin_call();
  if (qp.probing() && algorithm.event) {
    reads_.rtts.add();
    qp.read_answer();
    qp.end_probe(now);
  }
  bool due = qp.due <= now, wanted = due && qp.is_wanted();
  if (wanted) qp.note_lateness(now, interval);
  if (due) qp.due = next_call(qp.due, now, interval);
  if (wanted || qp.updated()) {
    announce_call(qp);
    call.call(qp, algorithm, due);
    current_.store(0, std::memory_order_release);
    if (!qp.parameters().intact()) note_damage(qp, algorithm);
  }
  qp.next = std::min(qp.is_wanted() ? qp.due : kNever, qp.look_at(now));
}

// Does for a queue pair at rest what can be seen of a call.
inline void PccPoller::count_rest(PccQp& qp, PccCall& call) {
  const TimeNs now = call.now(), interval = run_.interval;
  qp.note_lateness(now, interval);
  qp.next = qp.due = next_call(qp.due, now, interval);
  calls_.add();
  call.count_rest();
  qp.count_rest();
}

inline void PccPoller::announce_call(const PccQp& qp) {
  uint64_t number = calls_.get() + 1;
  calls_.set(number);
  current_.store(number << kNumberShift | uint64_t{qp.slot()} << kSlotShift | qp.qpn(),
                 std::memory_order_release);
}

void PccPoller::note_damage(const PccQp& qp, const PccAlgorithm& algorithm) {
  run_.set_damage(fmt::format("algorithm {} wrote past its parameters on QP {}",
                              algorithm.name.empty() ? "without a name" : algorithm.name,
                              qp.qpn()));
}

PccPoller::Current PccPoller::current() const {
  uint64_t word = current_.load(std::memory_order_relaxed);
  return {word >> kNumberShift, static_cast<uint32_t>(word & ((1u << kSlotShift) - 1)),
          static_cast<unsigned>(word >> kSlotShift & (MANGO_PCC_MAX_SLOTS - 1))};
}

}  // namespace rocefs
