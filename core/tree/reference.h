// The reference: what every file of a tree is, from the rows and words that the files themselves
// carry, as a Markdown page. Paths that differ in a name alone (devices, links, flows) are one
// line.
#pragma once

#include <string>

#include "core/tree/tree.h"

namespace rocefs {

// On the control thread.
std::string reference_of(Tree& tree);

// Adds reference, which shows the tree that it is in. `tree` outlives its files.
void add_reference_file(Tree& tree, const std::string& directory);

}  // namespace rocefs
