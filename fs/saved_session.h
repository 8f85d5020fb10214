// SavedSession: the state in the journal for the session that takes over the mount. Private to fs/,
// except for its size.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "fs/channel.h"

namespace rocefs {

// Handle of the kernel: the inode and who opened it.
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
  dev_t device;  // device number in the mount table; 0: none
  SavedChannel channel;
  SavedHandles files, directories;
};

}  // namespace rocefs
