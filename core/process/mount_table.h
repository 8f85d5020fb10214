// The mount table as the calling process sees it, and the rocefs in it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "core/base/result.h"

namespace rocefs {

// A line of /proc/self/mountinfo. `root` is what of the file system is shown there: "/" is all of
// it.
struct Mount {
  int id = 0;
  dev_t device = 0;
  std::string root, point, type;

  bool is_rocefs() const { return type == "fuse.rocefs"; }
};

// In the kernel's order: of two mounts at one path, the later one is on top.
std::vector<Mount> mount_table();
// The same by an open mountinfo, which takes no new descriptor. An error: nothing is known.
Result<std::vector<Mount>> read_mount_table(int mountinfo);

// Why a mount is of no use, by the errno of a look at it (bounded_look.h).
std::string why_not(int code);

// The absolute path of a live rocefs: the one at `wanted` or, where that is empty, the only one
// that the caller may use. Otherwise an error that says what is there instead, and lists several.
// `left_out` gets a line for each that could not be asked whether it lives, where another one was
// found. By a program with one thread.
Result<std::string> find_rocefs(const std::string& wanted, std::string& left_out);

}  // namespace rocefs
