// Answer to --version.
#pragma once

#include <string>

namespace rocefs {

// Lines: the version, the interfaces' numbers, what it was built with.
std::string version_text();

// Prints it, of any command. Returns the exit status.
int print_version();

}  // namespace rocefs
