// ProcessMemory: the memory of another process, by descriptors that are bound to it: once the
// process has executed another program or ended there is nothing behind them, whoever gets its
// number.
//
// Whether it may be had is asked once, when it is opened. Memory that blocks (a mapped file of a
// silent server) blocks whoever moves it, and then not even SIGKILL ends the wait: proc_pid_mem(5)
// waits for a page so. What userfaultfd(2) holds back fails instead.
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

// One thread at a time.
class ProcessMemory {
 public:
  // Of the process whose directory of /proc this is. The caller has the rights that are asked for
  // (EffectiveUser): those of ptrace(2).
  static Result<ProcessMemory> open(const Fd& directory);

  // All of these bytes, which follow each other there; false where any is not to be had. Pages that
  // the process itself may not touch are touched if they are its own (MAP_PRIVATE).
  bool read(uint64_t address, std::span<const iovec> into) const;
  bool write(uint64_t address, std::span<const iovec> from) const;
  // Whether the process may read all of these bytes, or write as well.
  bool allows(uint64_t address, uint64_t length, bool writes) const;

 private:
  ProcessMemory(Fd memory, ProcessMaps maps) : memory_(std::move(memory)), maps_(std::move(maps)) {}
  bool whole(bool out, uint64_t address, uint8_t* bytes, size_t length) const;
  bool move(bool out, uint64_t address, std::span<const iovec> parts) const;

  Fd memory_;
  ProcessMaps maps_;
  mutable std::unique_ptr<uint8_t[]> lump_;  // once it is needed
};

// The directory of a process or thread in /proc: what is opened in it is that process's, or fails.
Fd open_process(pid_t pid);

}  // namespace rocefs
