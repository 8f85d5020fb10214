// reset: restores the configuration without a remount, so that tests are independent.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/loop/engine.h"
#include "core/tree/file.h"
#include "core/tree/knob.h"
#include "core/tree/tree.h"

namespace rocefs {

// The parts' actions at a reset, beside resetting all knobs in the tree whose files are made. What
// nobody has looked for costs no file.
struct ResetParts {
  // Control thread, one after the other, first: slow actions. An error ends the reset.
  std::vector<std::function<void(const Operation& operation, Answer<void> answer)>> before;
  // Core thread, one after the other in one command between two events. Knobs follow in the same
  // command.
  std::vector<std::function<void()>> on_core;
  // Core thread, in that command: visits sets of knobs that may have changed although nobody has
  // looked for their files, as by a fault, or for a device that has left and come back.
  using VisitKnobs = std::function<void(const std::shared_ptr<KnobSet>&)>;
  std::vector<std::function<void(const VisitKnobs&)>> knobs;
  // Core thread, in that command, after the knobs: clears the counters of a part.
  std::vector<std::function<void()>> counters;
  // Control thread, after that.
  std::vector<std::function<void()>> after;
};

// Tree and engine outlive the file.
void add_reset_file(Tree& tree, const std::string& directory, Engine& engine, ResetParts parts);

}  // namespace rocefs
