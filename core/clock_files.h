// clock/: the files by which time is read and, under the virtual clock, moved.
#pragma once

#include <string>

#include "core/engine.h"
#include "core/knob.h"
#include "core/store_log.h"
#include "core/store_schedule.h"
#include "core/tree.h"

namespace rocefs {

// On the control thread; engine and tree outlive the engine's thread and this.
class ClockFiles {
 public:
  // `failed` hears of scheduled stores that were refused at their instant.
  ClockFiles(Tree& tree, const std::string& directory, Engine& engine,
             std::function<void(std::string line)> failed);
  ClockFiles(const ClockFiles&) = delete;
  ClockFiles& operator=(const ClockFiles&) = delete;

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

  Dilation dilation_;
  StoreLog log_;
  StoreSchedule schedule_;
};

}  // namespace rocefs
