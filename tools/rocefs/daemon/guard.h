// Guard: a process that sees to it that a mount whose supervisor was killed is dead, even if the
// kernel keeps a process that holds its connection: readers would wait for ever.
#pragma once

#include "core/base/fd.h"
#include "fs/cutoff.h"

namespace rocefs {

class Guard {
 public:
  Guard() = default;
  // Forks it, from a process with one thread; nobody's child. Its name is rocefs-guard. Where that
  // fails there is none.
  explicit Guard(const Cutoff& cutoff);

  // In a child of the guarded process: it is not guarded.
  void forget() { line_.reset(); }
  // The mount has ended: the guard ends too.
  void dismiss();

 private:
  Fd line_;  // hung up when the guarded process has died
};

}  // namespace rocefs
