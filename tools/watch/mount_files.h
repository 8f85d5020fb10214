// MountFiles: the files of a mount, for programs that look at it from outside. Paths begin at the
// mount point; none leads out of it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/fd.h"
#include "core/base/result.h"
#include "tools/watch/quiet_mount.h"

namespace rocefs {

// Any thread. Errors have the errno of the system call. Each call waits for the mount's daemon as
// any access to a file does.
class MountFiles {
 public:
  struct Entry {
    std::string name;
    enum class Kind { kDirectory, kFile, kOther } kind = Kind::kFile;  // where a link leads
    bool readable = false, writable = false;                           // for some user
  };

  // EINVAL if `mount_point` is none of rocefs. May start a process (quiet_mount.h).
  static Result<MountFiles> open(const std::string& mount_point);

  const std::string& mount_point() const { return mount_point_; }
  // Whether the mount has left the mount table. Then everything fails with ENODEV, and open files
  // should be closed: they keep the daemon from its end.
  bool ended() const { return mount_.ended(); }
  // `flags` as of open(2).
  Result<Fd> open_file(const std::string& path, int flags) const;
  // The whole text, of 8 MiB at most (EFBIG), with its newline.
  Result<std::string> read(const std::string& path) const;
  // One write(2), as of echo.
  Result<void> store(const std::string& path, std::string_view text) const;
  // Sorted, numbers within names by their value.
  Result<std::vector<Entry>> list(const std::string& directory) const;

 private:
  MountFiles(std::string mount_point, QuietMount mount)
      : mount_point_(std::move(mount_point)), mount_(std::move(mount)) {}

  std::string mount_point_;
  QuietMount mount_;
};

inline constexpr std::string_view kDebugFiles = "kernel/debug/rocefs/";

}  // namespace rocefs
