// State of a PccController. Lock order: `control`, the pollers' locks, then one of the others; no
// code blocks or takes a lock under those.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "pcc/api/algorithm.h"
#include "pcc/run/poller.h"
#include "pcc/run/run.h"
#include "pcc/run/slots.h"
#include "pcc/run/statistics.h"

namespace rocefs {

struct PccControllerState {
  PccControllerState(uint64_t run_seed, PccLog run_log) : seed(run_seed), log(std::move(run_log)) {}

  const uint64_t seed;
  const PccLog log;
  std::atomic<TimeNs> interval{60 * kMicrosecond};

  // Held by calls that change or read slots and runs.
  std::mutex control;
  PccSlots slots;
  std::optional<unsigned> applied;

  // Written under `control` and `view`. poll() needs neither lock: it runs only between begin() and
  // end().
  std::unique_ptr<PccRun> run;
  std::vector<std::unique_ptr<PccPoller>> pollers;

  // Lock of readers that must not wait for an algorithm to return.
  mutable std::mutex view;
  std::array<std::string, MANGO_PCC_MAX_SLOTS> names;
  PccStatistics earlier;  // of ended runs
  std::optional<std::string> damage;

  PccPoller& poller_of(uint32_t line) { return *pollers[line % pollers.size()]; }
  // Null for an inactive queue pair, or without a run. All pollers locked.
  PccQp* find(uint32_t qpn);
  // Queue pairs that run the slot, in the order of their numbers. All pollers locked.
  std::vector<PccQp*> running(unsigned slot);
  mango_status_e remove(unsigned slot);
};

// Keeps all pollers out of poll() during its lifetime. No-op without a run.
class PollersLocked {
 public:
  PollersLocked(PccRun* run, std::vector<std::unique_ptr<PccPoller>>& pollers)
      : run_(run), pollers_(pollers) {
    if (!run_) return;
    ++run_->wanted;
    for (auto& poller : pollers_) poller->lock().lock();
  }
  ~PollersLocked() {
    if (!run_) return;
    for (auto& poller : pollers_) poller->lock().unlock();
    --run_->wanted;
    run_->wanted.notify_all();
  }
  PollersLocked(const PollersLocked&) = delete;
  PollersLocked& operator=(const PollersLocked&) = delete;

 private:
  PccRun* run_;
  std::vector<std::unique_ptr<PccPoller>>& pollers_;
};

}  // namespace rocefs
