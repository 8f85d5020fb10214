// reset: restores the configuration without a remount, so that tests are independent.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/loop/engine.h"
#include "core/tree/file.h"
#include "core/tree/tree.h"

namespace rocefs {

// The parts' actions at a reset, beside resetting all knobs and counters in the tree.
struct ResetParts {
  // Control thread, one after the other, first: slow actions. An error ends the reset.
  std::vector<std::function<void(const Operation& operation, Answer<void> answer)>> before;
  // Core thread, one after the other in one command between two events. Knobs and counters follow
  // in the same command.
  std::vector<std::function<void()>> on_core;
  // Control thread, after that.
  std::vector<std::function<void()>> after;
};

// Tree and engine outlive the file.
void add_reset_file(Tree& tree, const std::string& directory, Engine& engine, ResetParts parts);

}  // namespace rocefs
