#include "tools/rocefs/host/child.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <string_view>

#include "core/base/fd.h"

namespace rocefs {

Result<void> in_child(const std::function<Result<void>()>& body) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return errorf(errno, "pipe: {}", std::strerror(errno));
  Fd read_end(ends[0]), write_end(ends[1]);
  pid_t child = ::fork();
  if (child < 0) return errorf(errno, "fork: {}", std::strerror(errno));
  if (child == 0) {
    Result<void> done = body();
    std::string_view why = done ? std::string_view() : done.error().reason;
    // A pipe takes PIPE_BUF octets whole, and nobody else writes.
    (void)!::write(write_end.get(), why.data(), std::min<size_t>(why.size(), PIPE_BUF));
    ::_exit(done ? 0 : std::clamp(done.error().code, 1, 255));
  }
  write_end.reset();
  char why[PIPE_BUF];
  ssize_t size = ::read(read_end.get(), why, sizeof why);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  if (size <= 0) return Error{ECHILD, "the child process that does it was killed"};
  return Error{WIFEXITED(status) ? WEXITSTATUS(status) : EIO, {why, static_cast<size_t>(size)}};
}

}  // namespace rocefs
