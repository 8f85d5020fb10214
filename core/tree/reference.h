// The reference: a Markdown page of all files of a tree, made from the rows and texts of the files
// themselves. Paths that differ in a name alone (devices, links, flows) share one line.
#pragma once

#include <string>

#include "core/tree/tree.h"

namespace rocefs {

// Control thread.
std::string reference_of(Tree& tree);

// Adds reference, which describes its own tree. `tree` outlives its files.
void add_reference_file(Tree& tree, const std::string& directory);

}  // namespace rocefs
