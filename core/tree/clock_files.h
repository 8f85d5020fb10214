// clock/: the files by which time is read and, under the virtual clock, moved.
#pragma once

#include <string>

#include "core/loop/engine.h"
#include "core/tree/knob.h"
#include "core/tree/store_log.h"
#include "core/tree/store_schedule.h"
#include "core/tree/tree.h"

namespace rocefs {

// What a worker that takes over finds.
struct SavedStores {
  StoreLog::Saved log;
  SavedSchedule schedule;
};

// On the control thread; engine and tree outlive the engine's thread and this.
class ClockFiles {
 public:
  // `failed` hears of scheduled stores that were refused at their instant.
  ClockFiles(Tree& tree, const std::string& directory, Engine& engine,
             std::function<void(std::string line)> failed);
  ClockFiles(const ClockFiles&) = delete;
  ClockFiles& operator=(const ClockFiles&) = delete;

  // Before the engine starts, when the tree is what it was: the log and what is to come are those
  // in the journal, and are kept there from now on. Both outlive the engine's thread and this.
  void keep(Journal& journal, SavedStores& saved);
  // The log says so.
  void taken_over();
  // A store that was applied there.
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
