// ProcessMemory: the memory of another process, by descriptors that are bound to it: after the
// process has executed another program or ended they fail, even if its PID is used again.
//
// Permission is checked once, at open(). Memory that blocks (a mapped file of a silent server)
// blocks the thread that moves it, and then not even SIGKILL ends the wait (proc_pid_mem(5)).
// Memory held back by userfaultfd(2) fails instead.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/base/fd.h"
#include "core/base/result.h"
#include "core/process/process_maps.h"

namespace rocefs {

// Single-threaded.
class ProcessMemory {
 public:
  // `directory`: the process's directory in /proc. The caller needs the rights of ptrace(2)
  // (EffectiveUser).
  static Result<ProcessMemory> open(const Fd& directory);

  // Moves contiguous bytes; false if any of them cannot be accessed. Pages that the process itself
  // may not touch are accessed if they are private (MAP_PRIVATE).
  bool read(uint64_t address, std::span<const iovec> into) const;
  bool write(uint64_t address, std::span<const iovec> from) const;
  // Returns whether the process may read all of these bytes, or write as well.
  bool allows(uint64_t address, uint64_t length, bool writes) const;

 private:
  ProcessMemory(Fd memory, ProcessMaps maps) : memory_(std::move(memory)), maps_(std::move(maps)) {}
  bool whole(bool out, uint64_t address, uint8_t* bytes, size_t length) const;
  bool move(bool out, uint64_t address, std::span<const iovec> parts) const;

  Fd memory_;
  ProcessMaps maps_;
  mutable std::unique_ptr<uint8_t[]> lump_;  // allocated when first needed
};

// Opens the directory of a process or thread in /proc: files opened in it are that process's, or
// fail.
Fd open_process(pid_t pid);

}  // namespace rocefs
