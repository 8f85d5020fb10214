// Which rocefs a program means that says nothing else.
#pragma once

#include <string>

namespace rocefs {

// The root of the tree: $ROCEFS_MOUNT; or else $SYSFS_PATH or /sys, if rocefs is there; or else the
// only one that is mounted. Empty when there is none, or several.
std::string find_mount();

}  // namespace rocefs
