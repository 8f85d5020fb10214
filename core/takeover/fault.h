// Fault points: places where a worker can be killed, to test takeover. Set in rocefs' environment,
// ROCEFS_FAULT=WHAT[,WHAT…]; effective once the mount is ready:
//
//   POINT[:N]    SIGKILL to the worker the N-th time (the first, by default) that it comes there
//   POINT:each   … each time, in every worker
//   no-resend    as if the kernel could not send requests again (Linux before 6.9)
//
// POINT is OPERATION-STAGE or a single word:
//
//   OPERATION  lookup, getattr, setattr, readlink, open, read, write, ioctl, release, opendir,
//              readdir, releasedir, poll or statfs; own, what no request asked for: scheduled
//              stores; any
//   STAGE      taken       read from the kernel
//              applied     done, not yet journalled
//              staged      journalled, not committed    } of the operations that are journalled:
//              committing  in the middle of the commit  } setattr, open, write, ioctl, release,
//              committed   committed, not answered      } opendir, releasedir, and own but for the
//                                                         last
//              answered    the kernel has the answer
//   restore    while the settings of the dead worker are restored
//   resend     after the kernel was asked to send again what the dead worker had not answered
//
// Fired points are reported on stderr and, by the worker that takes over, in dmesg.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace rocefs {

// In memory that all workers share: a point fires once.
struct FaultState {
  char point[32];  // empty: none
  uint64_t at;     // the number of the visit; 0: each
  std::atomic<uint64_t> passed;
  std::atomic<bool> fired;  // since the last takeover
  bool no_resend;
};

class Faults {
 public:
  explicit Faults(FaultState& state) : state_(state) {}
  // EINVAL for text outside the grammar.
  Result<void> arm(std::string_view text);

  // Kills the process if the point is armed. Costs a byte comparison where none is.
  void point(std::string_view name) {
    if (state_.point[0]) pass(name);
  }
  void point(std::string_view operation, std::string_view stage) {
    if (state_.point[0]) pass(operation, stage);
  }
  bool no_resend() const { return state_.no_resend; }
  // The point that killed the last worker, or empty. Cleared by the call.
  std::string take_fired();

 private:
  Result<void> arm_one(std::string_view word);
  void pass(std::string_view name);
  void pass(std::string_view operation, std::string_view stage);

  FaultState& state_;
};

}  // namespace rocefs
