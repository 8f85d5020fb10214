// Reads the mount table of the calling process and finds rocefs mounts in it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "core/base/result.h"

namespace rocefs {

// Line of /proc/self/mountinfo. `root` is the part of the file system that is mounted: "/" is all
// of it.
struct Mount {
  int id = 0;
  dev_t device = 0;
  std::string root, point, type, source;
  bool shared = false;  // what is mounted below it is seen in other mount namespaces

  bool is_rocefs() const { return type == "fuse.rocefs"; }
};

// Returns all mounts in the kernel's order: of two mounts at one path, the later one is on top.
std::vector<Mount> mount_table();
// Reads an open mountinfo again, without a new descriptor. Fails if it cannot be read.
Result<std::vector<Mount>> read_mount_table(int mountinfo);

// Returns why a mount cannot be used, by the errno of a check (bounded_look.h).
std::string why_not(int code);

// Returns the absolute path of a live rocefs: the one at `wanted` or, if that is empty, the only
// one that the caller may use. Otherwise fails with an error that says what is there instead, and
// lists several. Adds to `left_out` a line for each mount that could not be checked, if another one
// was found. For programs with one thread.
Result<std::string> find_rocefs(const std::string& wanted, std::string& left_out);

// Path of the mount: `option` unless it is empty, else $ROCEFS_MOUNT, else the only mounted rocefs.
// Mounts that could not be checked are listed on stderr.
Result<std::string> chosen_mount(const std::string& option);

}  // namespace rocefs
