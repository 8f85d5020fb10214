// Completion of a command line, for a shell.
#pragma once

#include <string>
#include <vector>

#include "tools/mango-ctl/commands.h"

namespace rocefs {

// Words that may stand in place of the last of `words`, which is unfinished: one a line. Names of
// devices, algorithms, parameters and interfaces come from the mount; without one there are none.
// ":files" and ":directories" stand for names that the shell knows.
std::string completions(const CommandTable& table, const std::vector<std::string>& words);

}  // namespace rocefs
