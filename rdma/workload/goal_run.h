// GoalRun: the progress of a GoalSchedule. Sans-IO: it tells which messages are sent, and is told
// when they have arrived.
//
// A send ends when its message has arrived. A recv takes the earliest message that fits, in the
// order of arrival and of the recvs. A calc takes its CPU for its time, after earlier ones.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <queue>
#include <utility>
#include <vector>

#include "core/base/time.h"
#include "rdma/workload/goal_schedule.h"

namespace rocefs {

class GoalRun {
 public:
  explicit GoalRun(std::shared_ptr<const GoalSchedule> schedule);

  // Begins all operations that wait for nothing.
  void begin(TimeNs now);
  // The message of a send has arrived.
  void arrived(uint32_t send, TimeNs now);
  // Time of the next end of a calc; kNever if none is running.
  TimeNs next() const { return calcs_.empty() ? kNever : calcs_.top().at; }
  // Ends a calc whose time has come. Precondition: next() is not kNever.
  void end_calc();
  // Sends that have begun since the last call.
  std::vector<uint32_t> take_sends() { return std::exchange(sends_, {}); }

  uint64_t left() const { return left_; }  // operations that have not ended
  // Operation that has not ended, the first of the file. Precondition: left() > 0.
  const GoalOperation& first_left() const;

 private:
  struct Calc {
    TimeNs at;
    uint64_t sequence;
    uint32_t operation;
    bool operator>(const Calc& other) const {
      return at != other.at ? at > other.at : sequence > other.sequence;
    }
  };
  struct Arrival {
    uint64_t sequence;
    uint32_t operation;
  };
  // Recvs that wait at a rank, by peer and tag, either of which may be kAny; and messages, each
  // under the four keys by which a recv may look for it.
  using Key = std::pair<uint32_t, uint32_t>;
  struct Rank {
    std::map<Key, std::deque<Arrival>> recvs, messages;
  };

  const GoalOperation& of(uint32_t operation) const { return schedule_->operations[operation]; }
  void follow(uint32_t operation, bool start);
  void work(TimeNs now);
  void start(uint32_t operation, TimeNs now);
  void post(uint32_t recv);
  void deliver(uint32_t send);

  const std::shared_ptr<const GoalSchedule> schedule_;
  std::vector<GoalSchedule::Dependency> followers_;  // sorted by what they wait for
  std::vector<uint32_t> first_follower_;             // of each operation, and behind the last one
  std::vector<uint32_t> waits_;                      // for so many
  std::vector<bool> done_, taken_;                   // taken: messages that a recv has got
  std::vector<uint32_t> begun_, ended_;              // of this instant, not yet followed
  std::vector<uint32_t> sends_;
  std::vector<Rank> ranks_;
  std::map<std::pair<uint32_t, uint32_t>, TimeNs> free_;  // by rank and CPU
  std::priority_queue<Calc, std::vector<Calc>, std::greater<>> calcs_;
  uint64_t sequence_ = 0;
  uint64_t left_;
};

}  // namespace rocefs
