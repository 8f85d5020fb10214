// Team: threads that do a list of jobs together with the caller. Between two lists they spin for a
// moment, then sleep.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <thread>
#include <vector>

namespace rocefs {

class Team {
 public:
  // Jobs have numbers below `jobs`. `threads`: from 1, the caller's included. `work` does the job
  // of a number, on any of the threads.
  Team(size_t threads, size_t jobs, std::function<void(uint32_t job)> work);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  // Does all these jobs, each once; returns when all are done. What the caller has written before
  // is seen by them, and what they have written is seen by the caller. A job goes to the same
  // thread each time, unless that one is busy.
  void run(std::span<const uint32_t> jobs);

 private:
  // A line of its own for each job, because threads compete for it.
  struct alignas(64) Claim {
    std::atomic<uint32_t> round{0};  // that took the job last
  };

  void serve(size_t me);
  void take_jobs(size_t me, uint32_t round);
  uint32_t next_round(uint32_t seen) const;

  const size_t threads_;
  const std::function<void(uint32_t)> work_;
  std::vector<Claim> claims_;
  std::span<const uint32_t> jobs_;  // while the round is open
  alignas(64) std::atomic<uint32_t> round_{0};
  std::atomic<uint32_t> open_{0};  // round whose jobs may be taken; 0: none
  std::atomic<bool> stopping_{false};
  alignas(64) std::atomic<size_t> done_{0};
  std::atomic<size_t> inside_{0};  // threads that may read jobs_
  std::vector<std::thread> helpers_;
};

}  // namespace rocefs
