// SavedSession: what a session leaves in the journal to the one that takes over its mount.
// Private to fs/, but for its size.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "fs/channel.h"

namespace rocefs {

// A handle of the kernel's: what was opened, by whom.
struct SavedHandle {
  uint64_t ino;  // 0: it is free
  uid_t uid;
  gid_t gid;
  pid_t pid;
  uint64_t poll_handle;  // the kernel's name for it when it is polled; 0: it is not
};

struct SavedHandles {
  static constexpr size_t kMax = 65536;
  uint64_t limit;  // no handle from this one on was ever used
  SavedHandle slots[kMax];
};

struct SavedSession {
  dev_t device;  // of the mount, as the mount table has it; 0: it has not
  SavedChannel channel;
  SavedHandles files, directories;
};

}  // namespace rocefs
