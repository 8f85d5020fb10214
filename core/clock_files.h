// clock/: the files by which time is read and, under the virtual clock, moved.
#pragma once

#include <string>

#include "core/engine.h"
#include "core/tree.h"

namespace rocefs {

// `engine` outlives the tree.
void add_clock_files(Tree& tree, const std::string& directory, Engine& engine);

}  // namespace rocefs
