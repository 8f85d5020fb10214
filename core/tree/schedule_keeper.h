// ScheduleKeeper: keeps in the journal the stores that wait for their time, so that a worker that
// takes over applies them. On the control thread.
//
// Records are written one behind the other, and marked when they are done with; when there is no
// room behind the last one, those that still wait are written to the other half of the memory.
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
    uint64_t half, end;  // which one is in use, and how far
  } place;
  alignas(8) char halves[2][kHalf];
};

struct ScheduledStore {
  Moment moment;
  Caller caller;
  bool knobs;        // alone
  std::string text;  // as format_assignments() writes them
};

class ScheduleKeeper {
 public:
  // Both outlive it.
  ScheduleKeeper(Journal& journal, SavedSchedule& saved);
  ScheduleKeeper(const ScheduleKeeper&) = delete;
  ScheduleKeeper& operator=(const ScheduleKeeper&) = delete;

  // Once, before anything else: gives `take` what the dead worker left, in the order in which it
  // was added. `take` returns the name it has from now on: larger ones for later ones.
  template <class Take>
  void restore(Take take) {
    for (uint64_t at = 0; at < end_;) {
      const Record& record = record_at(at);
      if (!record.gone) waiting_[take(store_of(record))] = at;
      at += record.bytes();
    }
  }

  // Each is there, or gone, with the journal's next commit. False if there is no room.
  bool add(uint64_t name, const ScheduledStore& store);
  // Nothing for a name that is not there.
  void remove(uint64_t name);
  // Commits at once.
  void clear();
  void commit() { journal_.commit(); }

 private:
  struct Record {
    Moment moment;
    Caller caller;
    uint32_t knobs, gone;
    uint64_t size;  // of the text behind it
    uint64_t bytes() const { return (sizeof(Record) + size + 7) / 8 * 8; }
  };

  Record& record_at(uint64_t at) const {
    return *reinterpret_cast<Record*>(saved_.halves[half_] + at);
  }
  static ScheduledStore store_of(const Record& record);
  void move_to_other_half();

  Journal& journal_;
  SavedSchedule& saved_;
  uint64_t half_, end_;                   // as it will be after the commit
  std::map<uint64_t, uint64_t> waiting_;  // where in the half
};

}  // namespace rocefs
