#include "core/process/standard_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace rocefs {

void reserve_standard_files() {
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    // Descriptors below are open, so that this one is the lowest.
    (void)!::open("/dev/null", O_RDONLY);
  }
}

int flush_standard_output(const char* program, int status) {
  errno = 0;
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return status;
  std::fprintf(stderr, "%s: stdout: %s\n", program, std::strerror(errno ? errno : EIO));
  return 1;
}

}  // namespace rocefs
