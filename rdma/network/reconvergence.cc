#include "rdma/network/reconvergence.h"

#include <algorithm>

namespace rocefs {

Reconvergence::Reconvergence(Scheduler& scheduler, size_t cables,
                             std::function<bool(uint32_t)> works, std::function<void()> compute)
    : scheduler_(scheduler),
      works_(std::move(works)),
      compute_(std::move(compute)),
      works_known_(cables),
      works_now_(cables),
      known_(event_of<&Reconvergence::on_known>(this)),
      learn_(event_of<&Reconvergence::learn_all>(this)) {
  for (uint32_t cable = 0; cable < cables; ++cable) works_now_[cable] = works_(cable);
  works_known_ = works_now_;
}

// A change of one direction is none of the cable if the other is down. With a delay that was
// shortened meanwhile, a change still becomes known after those before it.
void Reconvergence::changed(uint32_t cable) {
  bool works = works_(cable);
  if (works == works_now_[cable]) return;
  works_now_[cable] = works;
  if (!enabled_) return;
  TimeNs due = scheduler_.now() + delay_;
  if (!changes_.empty()) due = std::max(due, changes_.back().known_at);
  changes_.push_back({due, cable, works});
  if (changes_.size() == 1) scheduler_.at(known_, due);
}

void Reconvergence::on_known(TimeNs now) {
  bool differs = false;
  while (!changes_.empty() && changes_.front().known_at <= now) {
    const Change& change = changes_.front();
    differs |= works_known_[change.cable] != change.works;
    works_known_[change.cable] = change.works;
    changes_.pop_front();
  }
  if (!changes_.empty()) scheduler_.at(known_, changes_.front().known_at);
  if (!differs) return;
  counters_.convergences.add();
  compute_();
}

void Reconvergence::learn_all(TimeNs) {
  changes_.clear();
  scheduler_.cancel(known_);
  works_known_ = works_now_;
  compute_();
}

void Reconvergence::reset() {
  changes_.clear();
  scheduler_.cancel(known_);
  if (enabled_) scheduler_.after(learn_, 0);
}

void Reconvergence::apply(std::span<const KnobValue> values) {
  bool enabled = std::get<uint64_t>(values[knob_index(kReconvergenceKnobs, "reconverge")]) == 1;
  delay_ =
      static_cast<TimeNs>(std::get<uint64_t>(values[knob_index(kReconvergenceKnobs, "delay")]));
  if (std::exchange(enabled_, enabled) != enabled) learn_all(scheduler_.now());
}

}  // namespace rocefs
