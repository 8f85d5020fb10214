// ScheduleKeeper: keeps scheduled stores in the journal, so that a worker that takes over applies
// them. Control thread.
//
// Records are appended, and marked when they are done; when there is no room behind the last one,
// the pending records are copied to the other half of the memory.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/time.h"
#include "core/takeover/journal.h"
#include "core/tree/file.h"

namespace rocefs {

struct SavedSchedule {
  static constexpr uint64_t kHalf = 16 << 20;
  struct Place {
    uint64_t half, end;  // the half in use, and its end
  } place;
  alignas(8) char halves[2][kHalf];
};

struct ScheduledStore {
  Moment moment;
  Caller caller;
  bool knobs;        // only knobs
  std::string text;  // in the form of format_assignments()
};

class ScheduleKeeper {
 public:
  // Both outlive this object.
  ScheduleKeeper(Journal& journal, SavedSchedule& saved);
  ScheduleKeeper(const ScheduleKeeper&) = delete;
  ScheduleKeeper& operator=(const ScheduleKeeper&) = delete;

  // At most once, first: passes `take` the dead worker's stores in the order in which they were
  // added. `take` returns their new names, in increasing order.
  template <class Take>
  void restore(Take take) {
    for (uint64_t at = 0; at < end_;) {
      const Record& record = record_at(at);
      if (!record.gone) waiting_[take(store_of(record))] = at;
      at += record.bytes();
    }
  }

  // Takes effect with the journal's next commit. False if there is no room.
  bool add(uint64_t name, const ScheduledStore& store);
  // No effect for an unknown name.
  void remove(uint64_t name);
  // Commits at once.
  void clear();
  void commit() { journal_.commit(); }

 private:
  struct Record {
    Moment moment;
    Caller caller;
    uint32_t knobs, gone;
    uint64_t size;  // octets of the text that follows
    uint64_t bytes() const { return (sizeof(Record) + size + 7) / 8 * 8; }
  };

  Record& record_at(uint64_t at) const {
    return *reinterpret_cast<Record*>(saved_.halves[half_] + at);
  }
  static ScheduledStore store_of(const Record& record);
  void move_to_other_half();

  Journal& journal_;
  SavedSchedule& saved_;
  uint64_t half_, end_;                   // after the next commit
  std::map<uint64_t, uint64_t> waiting_;  // positions in the half
};

}  // namespace rocefs
