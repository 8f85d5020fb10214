#include "tools/rocefs/command/exit_status.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace rocefs {

int print_failure(const Failure& failure) {
  std::fprintf(stderr, "rocefs: %s\n", failure.reason.c_str());
  return failure.exit_code;
}

int finish_output(int exit_code) {
  errno = 0;
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return exit_code;
  std::fprintf(stderr, "rocefs: stdout: %s\n", std::strerror(errno ? errno : EIO));
  return 1;
}

}  // namespace rocefs
