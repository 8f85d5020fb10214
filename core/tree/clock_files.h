// clock/: files to read time and, under the virtual clock, to advance it.
#pragma once

#include <string>

#include "core/loop/engine.h"
#include "core/tree/knob.h"
#include "core/tree/store_log.h"
#include "core/tree/store_schedule.h"
#include "core/tree/tree.h"

namespace rocefs {

// Journalled state of clock/.
struct SavedStores {
  StoreLog::Saved log;
  SavedSchedule schedule;
};

// Control thread; engine and tree outlive the engine's thread and this object.
class ClockFiles {
 public:
  // `failed` logs scheduled stores that were refused at their moment.
  ClockFiles(Tree& tree, const std::string& directory, Engine& engine,
             std::function<void(std::string line)> failed);
  ClockFiles(const ClockFiles&) = delete;
  ClockFiles& operator=(const ClockFiles&) = delete;

  // Before the engine starts, with the tree restored: takes the log and the pending stores from the
  // journal, and keeps them there. Both outlive the engine's thread and this object.
  void keep(Journal& journal, SavedStores& saved);
  // Adds a note to the log.
  void taken_over();
  // Logs an applied store.
  void stored(std::string_view path, std::string_view text, const Moment& applied);
  StoreSchedule& schedule() { return schedule_; }

 private:
  class Dilation final : public KnobOwner {
   public:
    explicit Dilation(Engine& engine) : engine_(engine) {}
    Result<void> check(std::span<const KnobValue> proposed) const override;
    void apply(std::span<const KnobValue> values) override;

   private:
    Engine& engine_;
  };

  Engine& engine_;
  Dilation dilation_;
  StoreLog log_;
  StoreSchedule schedule_;
};

}  // namespace rocefs
