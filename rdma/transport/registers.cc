#include "rdma/transport/registers.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>

namespace rocefs {
namespace {

// Lines exist for every number that a device assigns.
bool has_line(uint32_t qpn) {
  return qpn >= ROCEFS_FIRST_QPN && qpn - ROCEFS_FIRST_QPN < ROCEFS_MAX_QPS;
}

template <class T>
std::atomic_ref<T> shared(T& word) {
  return std::atomic_ref<T>(word);
}

}  // namespace

Result<void> Registers::open(ClockMode mode) {
  auto memory = SharedMemory::create("rocefs-signals", sizeof(rocefs_signals_page),
                                     SharedMemory::Others::kRead);
  if (!memory) return memory.error();
  signals_ = std::make_shared<SharedMemory>(std::move(*memory));
  auto& page = *signals_->at<rocefs_signals_page>(0);
  page.version = ROCEFS_REGISTERS_VERSION;
  page.virtual_clock = mode == ClockMode::kVirtual;
  page.dilation = 1;
  return {};
}

void Registers::set_clock(const ClockReading& clock) {
  if (!signals_) return;
  auto& page = *signals_->at<rocefs_signals_page>(0);
  shared(page.clock_sequence).fetch_add(1, std::memory_order_acq_rel);
  shared(page.base_ns).store(static_cast<uint64_t>(clock.base), std::memory_order_release);
  shared(page.since_ns).store(static_cast<uint64_t>(clock.since), std::memory_order_release);
  shared(page.dilation).store(clock.dilation, std::memory_order_release);
  shared(page.clock_sequence).fetch_add(1, std::memory_order_release);
}

Result<std::shared_ptr<SharedMemory>> Registers::take(WindowController& owner) {
  if (!signals_) return errorf(EOPNOTSUPP, "{} has no register pages", name_);
  if (cfr_.controlled()) {
    return errorf(EBUSY, "the windows of {} are another's", name_);
  }
  auto memory = SharedMemory::create("rocefs-control", sizeof(rocefs_control_page),
                                     SharedMemory::Others::kWrite);
  if (!memory) return memory.error();
  control_ = std::make_shared<SharedMemory>(std::move(*memory));
  control_->at<rocefs_control_page>(0)->version = ROCEFS_REGISTERS_VERSION;
  if (Result<void> taken = cfr_.take_windows(owner); !taken) return taken.error();
  return control_;
}

void Registers::give_back(const WindowController& owner) {
  cfr_.return_windows(owner);
  if (!cfr_.controlled()) control_.reset();
}

rocefs_qp_signals* Registers::signals_of(uint32_t qpn) const {
  if (!signals_ || !has_line(qpn)) return nullptr;
  return &signals_->at<rocefs_signals_page>(0)->qps[qpn - ROCEFS_FIRST_QPN];
}

const rocefs_qp_control* Registers::control_of(uint32_t qpn) const {
  if (!control_ || !has_line(qpn)) return nullptr;
  return &control_->at<rocefs_control_page>(0)->qps[qpn - ROCEFS_FIRST_QPN];
}

// Clears the line. Others may still be reading it for the queue pair that had the number before:
// the stores release, so that a reader of a new word also sees that the old generation is over.
void Registers::prepare(uint32_t qpn, const QpOwner& program) {
  rocefs_qp_signals* line = signals_of(qpn);
  if (!line) return;
  auto set = [](auto& word, auto value) { shared(word).store(value, std::memory_order_release); };
  set(line->pid, static_cast<uint32_t>(program.pid));
  set(line->cnps, uint64_t{0});
  set(line->rtt_ns, uint64_t{0});
  set(line->rtt_probe, uint32_t{0});
  set(line->window, uint32_t{ROCEFS_NO_WINDOW});
  set(line->rate_bps, uint64_t{0});
  set(line->line_bps, uint64_t{0});
  for (size_t i = 0; i < sizeof line->comm; ++i) {
    set(line->comm[i], i < program.comm.size() ? program.comm[i] : '\0');
  }
}

void Registers::activate(uint32_t qpn) {
  rocefs_qp_signals* line = signals_of(qpn);
  if (!line || line->generation % 2 != 0) return;
  shared(line->generation).store(line->generation + 1, std::memory_order_release);
  auto& page = *signals_->at<rocefs_signals_page>(0);
  uint32_t number = qpn - ROCEFS_FIRST_QPN;
  shared(page.active[number / 64]).fetch_or(uint64_t{1} << number % 64, std::memory_order_release);
  note_change(page, 1);
}

void Registers::deactivate(uint32_t qpn) {
  rocefs_qp_signals* line = signals_of(qpn);
  if (!line || line->generation % 2 == 0) return;
  shared(line->generation).store(line->generation + 1, std::memory_order_release);
  auto& page = *signals_->at<rocefs_signals_page>(0);
  uint32_t number = qpn - ROCEFS_FIRST_QPN;
  shared(page.active[number / 64])
      .fetch_and(~(uint64_t{1} << number % 64), std::memory_order_release);
  note_change(page, -1);
}

// Queue pairs come and go by control commands, not by packets, so that a system call does no harm.
// The call is made only while the windows have an owner, which may be waiting.
void Registers::note_change(rocefs_signals_page& page, int32_t more) {
  shared(page.active_count)
      .store(page.active_count + static_cast<uint32_t>(more), std::memory_order_relaxed);
  shared(page.changes).fetch_add(1, std::memory_order_release);
  if (control_) ::syscall(SYS_futex, &page.changes, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  for (const auto& changed : listeners_) changed();
}

void Registers::add_event(const rocefs_qp_event& event) {
  if (!signals_) return;
  auto& page = *signals_->at<rocefs_signals_page>(0);
  uint64_t number = page.events_written;
  rocefs_qp_event& place = page.events[number % ROCEFS_EVENT_ENTRIES];
  static_assert(sizeof event % sizeof(uint64_t) == 0);
  auto* from = reinterpret_cast<const uint64_t*>(&event);
  auto* to = reinterpret_cast<uint64_t*>(&place);
  for (size_t i = 0; i < sizeof event / sizeof *to; ++i) {
    shared(to[i]).store(from[i], std::memory_order_release);
  }
  shared(page.events_written).store(number + 1, std::memory_order_release);
  if (event_added_) event_added_();
}

void Registers::note_rtt(TimeNs rtt) {
  usual_rtt_ += (rtt - usual_rtt_) / 8;
  usual_rtt_ = std::max<TimeNs>(usual_rtt_, 1);
}

}  // namespace rocefs
