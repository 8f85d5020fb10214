#include "fs/mount_point.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>

namespace rocefs {
namespace {

// mountinfo writes blanks, tabs, newlines and backslashes as \ooo.
std::string unescaped(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      result += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                                  (text[i + 3] - '0'));
      i += 3;
    } else {
      result += text[i];
    }
  }
  return result;
}

// What is there, as an errno. Asks the daemon of a mount anew: the kernel may remember for an hour.
int look_at(const std::string& path, mode_t& mode) {
  struct statx status;
  if (::statx(AT_FDCWD, path.c_str(), AT_STATX_FORCE_SYNC, STATX_TYPE, &status) != 0) return errno;
  mode = status.stx_mode;
  return 0;
}

Error failure(const std::string& path, int code) {
  return errorf(code, "{}: {}", path, std::strerror(code));
}

}  // namespace

std::optional<dev_t> mounted_device(const std::string& path) {
  std::ifstream mounts("/proc/self/mountinfo");
  std::optional<dev_t> device;
  for (std::string line; std::getline(mounts, line);) {
    // 36 35 98:0 /root /mount/point options - type source options
    std::istringstream words(line);
    std::string id, parent, number, root, point, word;
    words >> id >> parent >> number >> root >> point;
    while (words >> word && word != "-") {
    }
    std::string type;
    words >> type;
    if (unescaped(point) != path) continue;
    device.reset();  // the last one listed is on top
    unsigned high = 0, low = 0;
    if (type == "fuse.rocefs" && std::sscanf(number.c_str(), "%u:%u", &high, &low) == 2) {
      device = makedev(high, low);
    }
  }
  return device;
}

void unmount_lazily(const std::string& path) {
  if (::umount2(path.c_str(), MNT_DETACH) == 0) return;
  const char* arguments[] = {"fusermount3", "-u", "-z", "-q", "--", path.c_str(), nullptr};
  pid_t pid = 0;
  if (::posix_spawnp(&pid, arguments[0], nullptr, nullptr, const_cast<char**>(arguments),
                     ::environ) == 0) {
    ::waitpid(pid, nullptr, 0);
  }
}

Result<std::string> check_mount_point(const std::string& path) {
  std::string trimmed = path;
  while (trimmed.size() > 1 && trimmed.back() == '/') trimmed.pop_back();
  // Without a slash at its end, a path whose last part is a dead mount can still be resolved.
  std::unique_ptr<char, decltype(&std::free)> resolved(::realpath(trimmed.c_str(), nullptr),
                                                       std::free);
  if (!resolved) return failure(path, errno);
  std::string full = resolved.get();
  mode_t mode = 0;
  int code = look_at(full, mode);
  if (code == ENOTCONN && mounted_device(full)) {
    std::fprintf(stderr, "rocefs: %s: unmounting the dead mount of an earlier rocefs\n",
                 path.c_str());
    unmount_lazily(full);
    code = look_at(full, mode);
  }
  if (code != 0) return failure(path, code);
  if (!S_ISDIR(mode)) return failure(path, ENOTDIR);
  if (mounted_device(full)) return errorf(EBUSY, "{}: busy: a rocefs is mounted there", path);
  // fusermount3 mounts only where its user may write; asked here, that is one line.
  if (::geteuid() != 0 && ::access(full.c_str(), W_OK) != 0) return failure(path, errno);
  return full;
}

}  // namespace rocefs
