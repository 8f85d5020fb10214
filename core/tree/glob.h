// Patterns of paths: one line stores a knob of many devices, switches or links.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/tree/tree.h"

namespace rocefs {

// Whether a component of `path` has a * or ?.
bool is_pattern(std::string_view path);
// Paths of the files that `pattern` stands for, in the order of the tree: * and ? in a component
// stand for what they stand for in a shell. A path without them is the only one. Control thread.
std::vector<std::string> matching_files(Tree& tree, std::string_view pattern);

}  // namespace rocefs
