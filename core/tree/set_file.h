// set: several knobs in one store, all or nothing.
#pragma once

#include <string>

#include "core/loop/engine.h"
#include "core/tree/tree.h"

namespace rocefs {

// Engine and tree outlive the file.
void add_set_file(Tree& tree, const std::string& directory, Engine& engine);

}  // namespace rocefs
