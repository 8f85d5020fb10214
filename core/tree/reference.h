// The reference: a Markdown page of all files of a tree, made from the rows and texts of the files
// themselves. Paths that differ in a name alone (devices, links, flows) share one line.
#pragma once

#include <string>

#include "core/loop/poll_loop.h"
#include "core/tree/tree.h"

namespace rocefs {

// Adds reference, which describes its own tree. It is made in turns of `loop`, the control
// thread's. `tree` and `loop` outlive its files.
void add_reference_file(Tree& tree, const std::string& directory, PollLoop& loop);

}  // namespace rocefs
