#include "core/loop/regions.h"

#include <algorithm>
#include <iterator>

namespace rocefs {
namespace {

// Longest window. A run is idle only at the end of one, and tasks of alone() wait for it.
constexpr TimeNs kLongest = kMicrosecond;
// With fewer events in a window, it costs more to wake another thread than it takes over.
constexpr uint64_t kFew = 128;

std::vector<std::unique_ptr<Region>> make_regions(size_t count) {
  std::vector<std::unique_ptr<Region>> all;
  while (all.size() < count) all.push_back(std::make_unique<Region>());
  return all;
}

}  // namespace

Regions::Regions(Scheduler& common, size_t count, size_t threads)
    : common_(common),
      regions_(make_regions(count)),
      team_(threads, count, [this](uint32_t number) { run(*regions_[number], last_); }) {
  for (const auto& one : regions_) one->scheduler_.pass(common.now());
}

void Regions::set_lookahead(std::function<TimeNs()> lookahead) {
  lookahead_ = std::move(lookahead);
  lookahead_known_ = false;
}

TimeNs Regions::next_of_regions() const {
  TimeNs due = kNever;
  for (const auto& one : regions_) due = std::min({due, one->scheduler_.next(), one->expected_});
  return due;
}

TimeNs Regions::next() {
  if (between_windows()) hand_over();
  const TimeNs due = std::min(common_.next(), next_of_regions());
  return between_windows() ? due : std::min(due, end_ - 1);
}

void Regions::hand_over() {
  for (const auto& one : regions_) {
    if (std::exchange(one->sent_, false)) one->work_->hand_over();
  }
}

bool Regions::step(TimeNs limit) {
  if (!lookahead_known_) {
    hand_over();  // a longer window could be longer than what is on its way takes
    window_ = std::clamp<TimeNs>(lookahead_(), 1, kLongest);
    lookahead_known_ = true;
    end_ = 0;
  }
  if (between_windows()) hand_over();  // what was sent alone, between two windows
  const TimeNs common = common_.next();
  TimeNs due = next_of_regions();
  if (!between_windows()) due = std::min(due, end_ - 1);
  if (std::min(common, due) > limit || std::min(common, due) == kNever) return false;
  if (common <= due) {
    if (!late_.empty()) {
      finish();  // may schedule something earlier
      return true;
    }
    for (const auto& one : regions_) one->scheduler_.pass(common);
    return common_.run_one(limit);
  }
  if (due >= end_) end_ = due > kNever - window_ ? kNever : (due / window_ + 1) * window_;
  run_regions(std::min({end_ - 1, common - 1, limit}));
  if (between_windows()) {
    finish();
    hand_over();
  }
  return true;
}

void Regions::run_regions(TimeNs last) {
  active_.clear();
  for (uint32_t i = 0; i < regions_.size(); ++i) {
    const Region& one = *regions_[i];
    if (one.scheduler_.next() <= last || one.expected_ <= last) active_.push_back(i);
  }
  last_ = last;
  runs_ = true;
  if (active_.size() == 1 || ran_ < kFew) {
    for (uint32_t number : active_) run(*regions_[number], last);
  } else {
    team_.run(active_);
  }
  runs_ = false;
  ran_ = 0;
  for (uint32_t number : active_) {
    Region& one = *regions_[number];
    ran_ += one.ran_;
    std::move(one.late_.begin(), one.late_.end(), std::back_inserter(late_));
    one.late_.clear();
  }
  common_.pass(last);
}

void Regions::run(Region& region, TimeNs last) {
  region.expected_ = kNever;
  region.work_->enter();
  uint64_t ran = 0;
  while (region.scheduler_.run_one(last)) ++ran;
  region.ran_ = ran;
  region.work_->leave();
}

void Regions::finish() {
  if (late_.empty()) return;
  for (const auto& one : regions_) one->scheduler_.pass(common_.now());
  std::stable_sort(late_.begin(), late_.end(),
                   [](const Region::Late& a, const Region::Late& b) { return a.at < b.at; });
  for (Region::Late& one : std::exchange(late_, {})) one.task();
}

void Regions::pass(TimeNs now) {
  for (const auto& one : regions_) one->scheduler_.pass(now);
  common_.pass(now);
}

void Regions::alone(size_t region, Task task) {
  if (!runs_) return task();
  Region& one = *regions_[region];
  one.late_.push_back({one.scheduler_.now(), std::move(task)});
}

Outstanding Regions::outstanding() const {
  Outstanding sum;
  for (const auto& one : regions_) sum += one->outstanding_;
  return sum;
}

bool Regions::any_flow() const {
  return std::any_of(regions_.begin(), regions_.end(),
                     [](const auto& one) { return one->outstanding_.flows > 0; });
}

uint64_t Regions::events_run() const {
  uint64_t sum = 0;
  for (const auto& one : regions_) sum += one->scheduler_.events_run();
  return sum;
}

}  // namespace rocefs
