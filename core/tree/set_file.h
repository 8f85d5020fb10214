// set: several knobs in one store, all or nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/assignment.h"
#include "core/loop/engine.h"
#include "core/tree/access.h"
#include "core/tree/tree.h"

namespace rocefs {

// Stores knobs together or not at all, as `writer` may; null: all. Answers when they are stored; an
// error names the path. Control thread; tree and engine outlive the answer.
void store_together(Tree& tree, Engine& engine, const std::vector<Assignment>& assignments,
                    const std::optional<TreeUser>& writer, Answer<void> answer);

// Engine and tree outlive the file.
void add_set_file(Tree& tree, const std::string& directory, Engine& engine);

}  // namespace rocefs
