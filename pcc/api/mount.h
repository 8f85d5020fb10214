// The mount that a program uses if it names none.
#pragma once

#include <string>

namespace rocefs {

// Root of the tree: $ROCEFS_MOUNT; else $SYSFS_PATH or /sys, if rocefs is mounted there; else the
// only mount of rocefs. Empty if there is none, or more than one.
std::string find_mount();

}  // namespace rocefs
