// PccRun: state shared by the pollers of a run.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "pcc/api/algorithm.h"
#include "pcc/run/slots.h"
#include "pcc/run/trace.h"
#include "rdma/uapi/registers.h"

namespace rocefs {

// Warnings logged once for each slot, since an algorithm would repeat them at each call.
enum class PccWarning : uint8_t { kNoWindow, kReserved, kUndeclared, kMissedHops };

class PccRun {
 public:
  PccRun(const rocefs_signals_page& s, rocefs_control_page& c, unsigned number_of_pollers,
         const PccSlots& all_slots, unsigned initial_slot, uint64_t run_seed,
         const std::atomic<TimeNs>& run_interval, const PccLog& run_log)
      : signals(s),
        control(c),
        pollers(number_of_pollers),
        slots(all_slots),
        slot(initial_slot),
        seed(run_seed),
        interval(run_interval),
        log(run_log),
        trace(c, number_of_pollers > 1) {}

  const rocefs_signals_page& signals;
  rocefs_control_page& control;
  const unsigned pollers;
  // Both change only while no poller is in poll().
  const PccSlots& slots;
  unsigned slot;  // of future queue pairs
  const uint64_t seed;
  const std::atomic<TimeNs>& interval;
  const PccLog& log;
  PccTrace trace;
  // Number of threads that wait for all pollers to leave poll(); they take precedence over poll().
  std::atomic<unsigned> wanted{0};

  // Any thread. Events that a poller did not read in time, so far; pollers may miss the same ones.
  void note_overwritten(uint64_t so_far) {
    uint64_t most = overwritten_.load(std::memory_order_relaxed);
    while (most < so_far && !overwritten_.compare_exchange_weak(most, so_far)) {
    }
    show_lost();
  }
  // Any thread. An event that its algorithm left for too long.
  void note_dropped() {
    dropped_.fetch_add(1, std::memory_order_relaxed);
    show_lost();
  }
  // Any thread. A call of an algorithm that takes too long.
  void note_slow_call() {
    store_word(control.slow_calls, slow_.fetch_add(1, std::memory_order_relaxed) + 1);
  }
  uint64_t events_lost() const {
    return overwritten_.load(std::memory_order_relaxed) + dropped_.load(std::memory_order_relaxed);
  }
  // Any thread. True for the first warning of that kind for the slot.
  bool first(unsigned of_slot, PccWarning warning) {
    auto bit = static_cast<uint8_t>(1u << static_cast<unsigned>(warning));
    return !(warned_[of_slot].fetch_or(bit, std::memory_order_relaxed) & bit);
  }
  void forget_warnings(unsigned of_slot) { warned_[of_slot] = 0; }

  // Any thread. The first reason is kept and logged.
  bool damaged() const { return damaged_.load(std::memory_order_acquire); }
  void set_damage(const std::string& why) {
    {
      std::lock_guard guard(damage_lock_);
      if (!damage_.empty()) return;
      damage_ = why;
      damaged_.store(true, std::memory_order_release);
    }
    log(MANGO_LOG_LEVEL_ERROR, why);
  }
  std::optional<std::string> damage() const {
    std::lock_guard guard(damage_lock_);
    if (damage_.empty()) return std::nullopt;
    return damage_;
  }

 private:
  void show_lost() {
    store_word(control.events_lost, static_cast<uint32_t>(std::min<uint64_t>(events_lost(), ~0u)));
  }

  std::atomic<uint64_t> overwritten_{0}, dropped_{0};
  std::atomic<uint32_t> slow_{0};
  std::array<std::atomic<uint8_t>, MANGO_PCC_MAX_SLOTS> warned_{};
  std::atomic<bool> damaged_{false};
  mutable std::mutex damage_lock_;
  std::string damage_;
};

}  // namespace rocefs
