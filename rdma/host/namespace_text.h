// Text of a namespace, as the links in /proc/PID/ns have it: net:[4026531840].
#pragma once

#include <string>

namespace rocefs {

// Empty for a descriptor of another file. Asks no strange file system, which may not answer. Any
// thread.
std::string namespace_text(int fd);

}  // namespace rocefs
