#include "core/tree/schedule_keeper.h"

#include <cstring>
#include <utility>

namespace rocefs {

ScheduleKeeper::ScheduleKeeper(Journal& journal, SavedSchedule& saved)
    : journal_(journal), saved_(saved), half_(saved.place.half), end_(saved.place.end) {}

ScheduledStore ScheduleKeeper::store_of(const Record& record) {
  const char* text = reinterpret_cast<const char*>(&record + 1);
  return {record.moment, record.caller, record.knobs != 0, std::string(text, record.size)};
}

// Memory behind the committed end is free: the record is written in place.
bool ScheduleKeeper::add(uint64_t name, const ScheduledStore& store) {
  Record record{store.moment, store.caller, store.knobs, 0, store.text.size()};
  if (end_ + record.bytes() > SavedSchedule::kHalf) move_to_other_half();
  if (end_ + record.bytes() > SavedSchedule::kHalf) return false;
  Record& place = record_at(end_);
  place = record;
  std::memcpy(&place + 1, store.text.data(), store.text.size());
  waiting_[name] = end_;
  end_ += record.bytes();
  journal_.stage(saved_.place, {half_, end_});
  return true;
}

void ScheduleKeeper::remove(uint64_t name) {
  auto it = waiting_.find(name);
  if (it == waiting_.end()) return;
  journal_.stage(record_at(it->second).gone, uint32_t{1});
  waiting_.erase(it);
}

void ScheduleKeeper::clear() {
  waiting_.clear();
  move_to_other_half();
}

// Commits at once: from then on the old half may be overwritten.
void ScheduleKeeper::move_to_other_half() {
  char* to = saved_.halves[1 - half_];
  uint64_t end = 0;
  for (auto& [name, at] : waiting_) {
    const Record& record = record_at(at);
    std::memcpy(to + end, &record, record.bytes());
    at = std::exchange(end, end + record.bytes());
  }
  half_ = 1 - half_;
  end_ = end;
  journal_.stage(saved_.place, {half_, end_});
  journal_.commit();
}

}  // namespace rocefs
