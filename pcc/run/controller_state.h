// What a PccController has, and its locks, in the order in which they are taken: `control`, the
// pollers', then one of the others, under which nothing else is locked and nothing blocks.
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

  // What calls that change something, or ask for what they change, hold.
  std::mutex control;
  PccSlots slots;
  std::optional<unsigned> applied;

  // Changed with `control`, and `view` too. poll() is called only between begin() and end(), and
  // needs neither.
  std::unique_ptr<PccRun> run;
  std::vector<std::unique_ptr<PccPoller>> pollers;

  // For those who must not wait for an algorithm to return.
  mutable std::mutex view;
  std::array<std::string, MANGO_PCC_MAX_SLOTS> names;
  PccStatistics earlier;  // of runs that have ended
  std::optional<std::string> damage;

  PccPoller& poller_of(uint32_t line) { return *pollers[line % pollers.size()]; }
  // Null when that one is not active, or nothing runs. With all pollers locked.
  PccQp* find(uint32_t qpn);
  // Of all that run the slot, in order of their numbers. With all pollers locked.
  std::vector<PccQp*> running(unsigned slot);
  mango_status_e remove(unsigned slot);
};

// Keeps all pollers out of poll() while it exists; nothing happens when nothing runs.
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
