#include "core/loop/packet_core.h"

#include <sched.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "core/loop/time_slice.h"

namespace rocefs {
namespace {

// Events between polls of other sources. Each poll costs a system call and cache lines: with 64 an
// uplink is a fifth slower. 256 take some tens of microseconds.
constexpr int kBatch = 256;
constexpr TimeNs kSpin = 50 * kMicrosecond;           // polls for deadlines nearer than this
constexpr TimeNs kSpinAfterWork = 20 * kMicrosecond;  // polls so long after the last input
constexpr TimeNs kYieldAfterBulk = 200 * kMicrosecond;
constexpr TimeNs kTurn = 2 * kMicrosecond;       // a thread on another CPU has started within it
constexpr TimeNs kSlipAfter = 5 * kMillisecond;  // tolerated lateness of a core, wall time
constexpr TimeNs kLook = 100 * kMicrosecond;     // between looks at other cores, wall time

}  // namespace

PacketCore::PacketCore(EngineTime& time, size_t number, FirstCoreWork* work,
                       std::unique_ptr<CoreIo> io, TimeNs start)
    : time_(time), number_(number), work_(work), io_(std::move(io)), tasks_(SIZE_MAX) {
  wake_->event = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  scheduler_.pass(start);
}

void PacketCore::start() {
  thread_ = std::thread([this] { work(); });
}

void PacketCore::join() {
  wake_->call();
  thread_.join();
}

void PacketCore::Wake::call() const {
  uint64_t one = 1;
  (void)!::write(event.get(), &one, sizeof one);
}

// The event is written before others may take the core for awake: a caller that looks in between
// writes it, too, since this thread may have lost its CPU. A later sleep has another number.
void PacketCore::nudge() {
  uint64_t asleep = sleeps_.load(std::memory_order_seq_cst);
  if (asleep % 2 == 0) return;
  if (time_.several()) time_.note_woken(number_, time_.clock().now());
  wake_->call();
  sleeps_.compare_exchange_strong(asleep, asleep + 1);
}

void PacketCore::run(Task task) {
  if (!time_.runs() || runs_here()) return task();
  (void)tasks_.post(task);
  nudge();
}

void PacketCore::work() {
  id_.store(std::this_thread::get_id());
  ask_for_short_slices();
  io_->enable();
  io_->watch(wake_->event.get(), [this] {
    uint64_t count;
    (void)!::read(wake_->event.get(), &count, sizeof count);
    time_.note_awake(number_);
  });
  end_alone();
  while (!time_.stopping()) {
    if (time_.mode() == ClockMode::kVirtual) {
      work_->run_virtual();
    } else {
      enter();
      work_real();
      leave();
    }
  }
  begin_alone();
}

void PacketCore::enter() {
  if (!work_) time_.gate().enter(number_);
}
void PacketCore::leave() {
  if (!work_) time_.gate().leave(number_);
}

TimeNs PacketCore::next_due() const {
  return work_ ? std::min(scheduler_.next(), work_->next_due()) : scheduler_.next();
}

// With several cores the first one takes what belongs to none of them while it is alone.
void PacketCore::run_events(TimeNs limit) {
  if (!time_.several()) return work_->run_events(limit, kBatch);
  for (int i = 0; i < kBatch && time_.goes_on() && scheduler_.run_one(limit); ++i) {
  }
}

bool PacketCore::has_orders() const {
  bool first = work_ && (work_->has_commands() || wake_->released.load() != 0);
  return first || !tasks_.empty() || time_.stopping();
}

// `wall_ns` is right if engine time is held, or is not.
void PacketCore::sleep(TimeNs wall_ns, bool held) {
  time_.note_turn(number_, held ? kNever : next_due());
  const uint64_t asleep = sleeps_.load(std::memory_order_relaxed) + 1;
  sleeps_.store(asleep, std::memory_order_seq_cst);
  bool idle = (!poller_ || poller_->may_sleep()) && !(part_ && part_->has_more());
  if (idle && !has_orders() && time_.held_now() == held) {
    leave();
    io_->wait(wall_ns);
    enter();
  }
  sleeps_.store(asleep + 1, std::memory_order_seq_cst);
  if (!time_.held()) time_.note_turn(number_, time_.clock().now());
  take_time();
  io_->poll();
  if (poller_) poller_->awake();
}

// Input from outside is stamped max(now, wall), but never ahead of an event that is still due. What
// other cores have sent has its own time: it is taken first, so that no time-out that is due comes
// before an answer that is there.
void PacketCore::take_time() {
  if (part_ && part_->take()) listen();
  if (time_.mode() != ClockMode::kReal || time_.held()) return;
  const TimeNs due = time_.several() ? scheduler_.next() : next_due();
  scheduler_.pass(std::max(scheduler_.now(), std::min(time_.clock().now(), due)));
}

void PacketCore::work_real() {
  if (work_) work_->take_released();
  const RealClock& clock = time_.clock();
  TimeNs wall = clock.now();
  time_.note_turn(number_, wall);
  if (part_ && part_->take()) listen();
  if ((poller_ || time_.several()) && !time_.held() && next_due() <= wall) {
    if (poller_) note_lag(poller_->lag());
    if (time_.several()) wait_for_others(wall);
    wall = std::min(wall, clock.now());  // no later than what was taken
  }
  if (!time_.held() && next_due() <= wall) {
    wall -= note_lateness(wall);
    run_events(wall);
  }
  take_time();
  if (work_) work_->take_commands(wall, kBatch);
  tasks_.drain();
  bool more = !time_.held() && next_due() <= wall;
  Poller::Found found = poller_ ? poller_->poll(more) : Poller::Found::kNothing;
  io_->poll();
  if (time_.held()) return sleep(kNever, true);
  if (keep_spinning(found, more)) return;
  TimeNs next = next_due();
  if (next == kNever) return sleep(kNever, false);
  TimeNs gap = (next - clock.now()) * static_cast<TimeNs>(clock.dilation());
  if (gap > kSpin) sleep(gap - kSpin / 2, false);
}

// While another core has work and gets no CPU, engine time waits for it: else it would be set back
// for all when that core is there again, and time-outs here come before its answers. Cores that
// wait for the same one slip the time once.
void PacketCore::wait_for_others(TimeNs wall) {
  const auto dilation = static_cast<TimeNs>(time_.clock().dilation());
  if (wall >= looked_at_ && wall - looked_at_ < kLook / dilation) return;
  looked_at_ = wall;
  const TimeNs since = time_.longest_wait(number_), allowed = kSlipAfter / dilation;
  if (since != kNever && wall - since > allowed) time_.slip(since + allowed);
}

// Threads that move bytes for the engine are part of the NIC: while they get no CPU, engine time
// slips, as it does when a core gets none.
void PacketCore::note_lag(TimeNs lag) {
  TimeNs excess = (lag - kSlipAfter) / static_cast<TimeNs>(time_.clock().dilation()) - lag_slipped_;
  if (lag <= kSlipAfter) {
    lag_slipped_ = 0;
  } else if (excess > 0) {
    lag_slipped_ += excess;
    time_.slip(time_.clock().now() - excess);
  }
}

// A source that has just sent data is likely to send more: the core stays awake for a while. After
// bulk work it yields the CPU to the threads that have it, and waits longer, because waking up
// costs more. After little work it does not yield, because sched_yield(2) puts it behind all
// spinning programs; a thread that still gets no CPU most likely waits for this one, so the core
// sleeps, and loses no turn by it.
bool PacketCore::keep_spinning(Poller::Found found, bool more) {
  TimeNs now = monotonic_ns();
  if (found != Poller::Found::kNothing || std::exchange(listens_, false)) found_ = now;
  if (found == Poller::Found::kBulk) found_bulk_ = now;
  bool bulk = now - found_bulk_ < kYieldAfterBulk;
  if (now - found_ >= kSpinAfterWork && !bulk) return false;
  bool waits = found == Poller::Found::kNothing && !more;
  if (!waits) return true;
  if (!bulk) return !poller_ || poller_->lag() < kTurn;
  ::sched_yield();
  return true;
}

// After a long absence of the core engine time slips: no timer fires ahead of earlier input.
TimeNs PacketCore::note_lateness(TimeNs wall) {
  auto dilation = static_cast<TimeNs>(time_.clock().dilation());
  const TimeNs due = part_ ? std::min(next_due(), part_->first_left()) : next_due();
  const TimeNs late = wall - due;
  lateness_.add(late * dilation);
  TimeNs allowed = kSlipAfter / dilation;
  return late <= allowed ? 0 : time_.slip(due + allowed);
}

}  // namespace rocefs
