#include "tools/rocefs/command/status_pipe.h"

#include <fcntl.h>
#include <unistd.h>

#include <climits>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "core/base/kstrto.h"

namespace rocefs {
namespace {

constexpr char kVariable[] = "ROCEFS_STATUS_PIPE";

}  // namespace

void hand_status_pipe(int descriptor) {
  ::fcntl(descriptor, F_SETFD, 0);
  ::setenv(kVariable, std::to_string(descriptor).c_str(), 1);
}

int take_status_pipe() {
  const char* value = std::getenv(kVariable);
  Result<uint64_t> number = kstrtou64(value ? value : "", 10);
  ::unsetenv(kVariable);
  if (!number || *number <= STDERR_FILENO || *number > INT_MAX) return -1;
  const int descriptor = static_cast<int>(*number);
  return ::fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0 ? descriptor : -1;
}

}  // namespace rocefs
