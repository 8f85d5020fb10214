#include "core/loop/time_slice.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "core/base/time.h"

namespace rocefs {
namespace {

// sched_setattr(2). The kernel's header for it and the C library's <sched.h> exclude each other.
struct SchedAttributes {
  uint32_t size;
  uint32_t sched_policy;
  uint64_t sched_flags;
  int32_t sched_nice;
  uint32_t sched_priority;
  uint64_t sched_runtime;  // ns
  uint64_t sched_deadline;
  uint64_t sched_period;
};

}  // namespace

void ask_for_short_slices() {
  SchedAttributes attributes{};
  attributes.size = sizeof attributes;
  if (::syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return;
  constexpr uint32_t kOther = 0;  // SCHED_OTHER
  if (attributes.sched_policy != kOther) return;
  attributes.sched_runtime = 100 * kMicrosecond;
  attributes.sched_flags = 0;
  (void)!::syscall(SYS_sched_setattr, 0, &attributes, 0);
}

}  // namespace rocefs
