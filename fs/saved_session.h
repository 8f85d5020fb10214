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

// Directories in which the kernel has looked names up, as bits by a part of their inode numbers: a
// bit may also stand for a directory that shares it. Written at once, not staged: a lookup that is
// taken back leaves a directory that is filled without need.
struct SavedLookups {
  static constexpr uint64_t kBits = uint64_t{1} << 20;
  uint64_t words[kBits / 64];

  void note(uint64_t directory) { words[word(directory)] |= bit(directory); }
  bool may_have(uint64_t directory) const { return words[word(directory)] & bit(directory); }

 private:
  static uint64_t word(uint64_t ino) { return ino % kBits / 64; }
  static uint64_t bit(uint64_t ino) { return uint64_t{1} << ino % 64; }
};

struct SavedSession {
  dev_t device;  // device number in the mount table; 0: none
  SavedChannel channel;
  SavedHandles files, directories;
  SavedLookups lookups;
};

}  // namespace rocefs
