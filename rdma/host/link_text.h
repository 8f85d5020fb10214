// Text of the links of /proc that name namespaces and descriptors. Any thread.
#pragma once

#include <unistd.h>

#include <string>

namespace rocefs {

// Empty if the link cannot be read. Asks no file system.
inline std::string link_text(const std::string& path) {
  char text[32] = {};
  return ::readlink(path.c_str(), text, sizeof text - 1) > 0 ? text : "";
}

}  // namespace rocefs
