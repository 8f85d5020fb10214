// clock/: the files by which time is read and, under the virtual clock, moved.
#pragma once

#include <string>

#include "core/engine.h"
#include "core/knob.h"
#include "core/tree.h"

namespace rocefs {

// On the control thread; engine and tree outlive the engine's thread and this.
class ClockFiles {
 public:
  ClockFiles(Tree& tree, const std::string& directory, Engine& engine);
  ClockFiles(const ClockFiles&) = delete;
  ClockFiles& operator=(const ClockFiles&) = delete;

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
};

}  // namespace rocefs
