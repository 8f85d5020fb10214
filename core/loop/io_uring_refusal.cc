#include "core/loop/io_uring_refusal.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "core/process/process_status.h"

namespace rocefs {
namespace {

bool is_refusal(int code) {
  return code == EPERM || code == EACCES || code == ENOSYS;
}

}  // namespace

IoUringBarriers io_uring_barriers() {
  IoUringBarriers barriers;
  std::ifstream("/proc/sys/kernel/io_uring_disabled") >> barriers.disabled;
  std::string status = text_at(AT_FDCWD, "/proc/self/status");
  barriers.filtered = std::atoi(std::string(field_of(status, "Seccomp:")).c_str()) != 0;
  return barriers;
}

// Both calls are harmless: nothing to submit or wait for, and an invalid operation.
int refused_on_ring(int ring) {
  constexpr unsigned kNoSuchOperation = 0x7fff;
  if (::syscall(__NR_io_uring_enter, ring, 0, 0, 0, nullptr, 0) < 0 && is_refusal(errno)) {
    return errno;
  }
  if (::syscall(__NR_io_uring_register, ring, kNoSuchOperation, nullptr, 0) < 0 &&
      is_refusal(errno)) {
    return errno;
  }
  return 0;
}

Result<void> multishot_refusal(int code) {
  if (code == 0) return {};
  if (code != EINVAL) return errorf(code, "io_uring: recvmsg: {}", std::strerror(code));
  return Error{ENOSYS,
               "this kernel's io_uring cannot receive datagrams as an uplink must (multishot "
               "recvmsg): it takes Linux 6.0"};
}

Error io_uring_refusal(int code, const IoUringBarriers& barriers) {
  if (code == ENOMEM) {
    return Error{code, "io_uring: not enough locked memory (ulimit -l) for its rings"};
  }
  if (!is_refusal(code)) return errorf(code, "io_uring: {}", std::strerror(code));
  std::string why;
  if (barriers.disabled != 0) {
    why =
        fmt::format("; the sysctl kernel.io_uring_disabled is {} and must be 0", barriers.disabled);
  }
  // Docker's default profile says EPERM, Podman's says ENOSYS.
  if (barriers.filtered) {
    why +=
        "; the seccomp profile in force must allow io_uring_setup, io_uring_enter and "
        "io_uring_register, as rocefs's own does: tools/containers/seccomp.json, installed in "
        "share/rocefs";
  }
  if (why.empty() && code == ENOSYS) return Error{code, "this kernel has no io_uring"};
  return errorf(code, "io_uring is forbidden here ({}){}", strerrorname_np(code), why);
}

}  // namespace rocefs
