#include "core/process/open_below.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace rocefs {

Fd open_below(int root, const std::string& path, int flags, uint64_t resolve) {
  open_how how{};
  how.flags = static_cast<uint64_t>(flags | O_CLOEXEC);
  how.resolve = resolve;
  constexpr int kTries = 10'000;
  for (int left = kTries;; --left) {
    const long fd = ::syscall(SYS_openat2, root, path.c_str(), &how, sizeof how);
    if (fd >= 0 || errno != EAGAIN || left == 0) return Fd(static_cast<int>(fd));
  }
}

}  // namespace rocefs
