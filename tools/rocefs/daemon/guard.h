// Guard: a process that cuts the mount's connection when the supervisor was killed, and removes the
// dead mount. Without it readers would wait for ever if a process that holds the connection is
// stuck in the kernel.
#pragma once

#include "core/base/fd.h"
#include "fs/cutoff.h"

namespace rocefs {

class Guard {
 public:
  Guard() = default;
  // Forks the guard, rocefs-guard, as an orphan. The caller has one thread. Without effect if fork
  // fails.
  explicit Guard(const Cutoff& cutoff);

  // In a child of the guarded process: closes its copy of the pipe.
  void forget() { line_.reset(); }
  // Ends the guard, after the mount has ended.
  void dismiss();

 private:
  Fd line_;  // pipe to the guard, closed when the guarded process dies
};

}  // namespace rocefs
