#include "core/loop/team.h"

#include <sched.h>

#include "core/base/spin.h"

namespace rocefs {
namespace {

// Spins before a thread gives its CPU away: tens of microseconds.
constexpr int kSpins = 1000;

// Waits until `over` is true. There may be fewer CPUs than threads.
template <class Over>
void spin_until(Over over) {
  for (int i = 0; !over(); ++i) {
    if (i < kSpins) {
      spin_pause();
    } else {
      ::sched_yield();
    }
  }
}

}  // namespace

Team::Team(size_t threads, size_t jobs, std::function<void(uint32_t)> work)
    : threads_(threads), work_(std::move(work)), claims_(jobs) {
  for (size_t i = 1; i < threads; ++i) helpers_.emplace_back([this, i] { serve(i); });
}

Team::~Team() {
  stopping_.store(true);
  round_.fetch_add(1);
  round_.notify_all();
  for (std::thread& one : helpers_) one.join();
}

void Team::run(std::span<const uint32_t> jobs) {
  jobs_ = jobs;
  done_.store(0, std::memory_order_relaxed);
  uint32_t round = round_.load(std::memory_order_relaxed) + 1;
  if (round == 0) ++round;
  open_.store(round, std::memory_order_seq_cst);
  round_.store(round, std::memory_order_seq_cst);
  round_.notify_all();
  take_jobs(0, round);
  spin_until([&] { return done_.load(std::memory_order_acquire) == jobs.size(); });
  // A helper that wakes up late must not read the jobs of the next round: it enters, and then sees
  // that the round is closed, or it is seen here.
  open_.store(0, std::memory_order_seq_cst);
  spin_until([&] { return inside_.load(std::memory_order_seq_cst) == 0; });
}

uint32_t Team::next_round(uint32_t seen) const {
  for (int i = 0; i < kSpins; ++i) {
    if (uint32_t round = round_.load(std::memory_order_acquire); round != seen) return round;
    spin_pause();
  }
  round_.wait(seen, std::memory_order_acquire);
  return round_.load(std::memory_order_acquire);
}

void Team::serve(size_t me) {
  for (uint32_t seen = 0;;) {
    seen = next_round(seen);
    if (stopping_.load()) return;
    inside_.fetch_add(1, std::memory_order_seq_cst);
    if (open_.load(std::memory_order_seq_cst) == seen) take_jobs(me, seen);
    inside_.fetch_sub(1, std::memory_order_seq_cst);
  }
}

void Team::take_jobs(size_t me, uint32_t round) {
  for (bool own : {true, false}) {
    for (uint32_t job : jobs_) {
      if (own && job % threads_ != me) continue;
      std::atomic<uint32_t>& claim = claims_[job].round;
      if (claim.load(std::memory_order_relaxed) == round) continue;
      if (claim.exchange(round, std::memory_order_acq_rel) == round) continue;
      work_(job);
      done_.fetch_add(1, std::memory_order_acq_rel);
    }
  }
}

}  // namespace rocefs
