#include "rdma/workload/goal_run.h"

#include <algorithm>
#include <array>

#include "rdma/workload/pattern.h"

namespace rocefs {
namespace {

// Keys under which recvs wait that take a message.
std::array<std::pair<uint32_t, uint32_t>, 4> keys_of(const GoalOperation& send) {
  constexpr uint32_t kAny = GoalOperation::kAny;
  return {{{send.rank, send.tag}, {send.rank, kAny}, {kAny, send.tag}, {kAny, kAny}}};
}

}  // namespace

GoalRun::GoalRun(std::shared_ptr<const GoalSchedule> schedule)
    : schedule_(std::move(schedule)),
      followers_(schedule_->dependencies),
      first_follower_(schedule_->operations.size() + 1),
      waits_(schedule_->operations.size()),
      done_(schedule_->operations.size()),
      taken_(schedule_->operations.size()),
      ranks_(schedule_->ranks),
      left_(schedule_->operations.size()) {
  auto by_first = [](const auto& a, const auto& b) { return a.first < b.first; };
  std::stable_sort(followers_.begin(), followers_.end(), by_first);
  for (const GoalSchedule::Dependency& one : followers_) {
    ++first_follower_[one.first + 1];
    ++waits_[one.then];
  }
  for (size_t i = 1; i < first_follower_.size(); ++i) first_follower_[i] += first_follower_[i - 1];
}

void GoalRun::begin(TimeNs now) {
  for (uint32_t operation = 0; operation < waits_.size(); ++operation) {
    if (waits_[operation] == 0) begun_.push_back(operation);
  }
  work(now);
}

void GoalRun::arrived(uint32_t send, TimeNs now) {
  ended_.push_back(send);
  deliver(send);
  work(now);
}

void GoalRun::end_calc() {
  Calc calc = calcs_.top();
  calcs_.pop();
  ended_.push_back(calc.operation);
  work(calc.at);
}

const GoalOperation& GoalRun::first_left() const {
  return of(static_cast<uint32_t>(std::find(done_.begin(), done_.end(), false) - done_.begin()));
}

void GoalRun::follow(uint32_t operation, bool start) {
  for (uint32_t i = first_follower_[operation]; i < first_follower_[operation + 1]; ++i) {
    const GoalSchedule::Dependency& one = followers_[i];
    if (one.start == start && --waits_[one.then] == 0) begun_.push_back(one.then);
  }
}

// Starts and ends what can, in the order in which it became possible.
void GoalRun::work(TimeNs now) {
  for (size_t begun = 0, ended = 0; begun < begun_.size() || ended < ended_.size();) {
    if (ended < ended_.size()) {
      uint32_t operation = ended_[ended++];
      done_[operation] = true;
      --left_;
      follow(operation, false);
    } else {
      uint32_t operation = begun_[begun++];
      start(operation, now);
      follow(operation, true);
    }
    if (begun == begun_.size()) begun_.clear(), begun = 0;
    if (ended == ended_.size()) ended_.clear(), ended = 0;
  }
}

void GoalRun::start(uint32_t operation, TimeNs now) {
  const GoalOperation& one = of(operation);
  if (one.kind == GoalOperation::Kind::kSend) return sends_.push_back(operation);
  if (one.kind == GoalOperation::Kind::kRecv) return post(operation);
  TimeNs& free = free_[{one.rank, one.cpu}];
  free = later(std::max(free, now), static_cast<TimeNs>(one.amount));
  if (free == now) return ended_.push_back(operation);
  calcs_.push({free, sequence_++, operation});
}

// Gives the recv the earliest message that fits, or keeps it.
void GoalRun::post(uint32_t recv) {
  const GoalOperation& one = of(recv);
  const Key key(one.peer, one.tag);
  Rank& rank = ranks_[one.rank];
  auto found = rank.messages.find(key);
  while (found != rank.messages.end() && taken_[found->second.front().operation]) {
    found->second.pop_front();
    if (found->second.empty()) found = (rank.messages.erase(found), rank.messages.end());
  }
  if (found == rank.messages.end()) {
    rank.recvs[key].push_back({sequence_++, recv});
    return;
  }
  taken_[found->second.front().operation] = true;
  ended_.push_back(recv);
}

// Gives the message to the earliest recv that it fits, or keeps it.
void GoalRun::deliver(uint32_t send) {
  const GoalOperation& one = of(send);
  Rank& rank = ranks_[one.peer];
  auto best = rank.recvs.end();
  for (const Key& key : keys_of(one)) {
    auto found = rank.recvs.find(key);
    if (found == rank.recvs.end()) continue;
    bool earlier =
        best == rank.recvs.end() || found->second.front().sequence < best->second.front().sequence;
    if (earlier) best = found;
  }
  if (best == rank.recvs.end()) {
    for (const Key& key : keys_of(one)) rank.messages[key].push_back({sequence_, send});
    ++sequence_;
    return;
  }
  ended_.push_back(best->second.front().operation);
  best->second.pop_front();
  if (best->second.empty()) rank.recvs.erase(best);
}

}  // namespace rocefs
