// Bundle: modules of the page as one script, for a page that is a single file.
#pragma once

#include <string>
#include <string_view>

namespace rocefs {

// `entry`, a path as of page_file(), and the modules that it imports, each once and before those
// that import it. The modules must have their imports of names (`import {a, b} from '/x.js';`) and
// `export` at the beginning of a line.
std::string bundle(std::string_view entry);

}  // namespace rocefs
