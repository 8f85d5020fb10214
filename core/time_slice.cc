#include "core/time_slice.h"

#include <linux/sched/types.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/time.h"

namespace rocefs {

void ask_for_short_slices() {
  sched_attr attributes{};
  attributes.size = sizeof attributes;
  if (::syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return;
  constexpr uint32_t kOther = 0;  // SCHED_OTHER
  if (attributes.sched_policy != kOther) return;
  attributes.sched_runtime = 100 * kMicrosecond;
  attributes.sched_flags = 0;
  (void)!::syscall(SYS_sched_setattr, 0, &attributes, 0);
}

}  // namespace rocefs
