#include "tools/watch/mount_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "core/process/open_below.h"

namespace rocefs {
namespace {

constexpr size_t kMaxText = 8 << 20;

Error error_of(std::string_view what) {
  const int code = errno;
  return errorf(code, "{}: {}", what, ::strerror(code));
}

}  // namespace

Result<MountFiles> MountFiles::open(const std::string& mount_point) {
  Result<QuietMount> mount = QuietMount::open(mount_point);
  if (!mount) return mount.error();
  MountFiles files(mount_point, std::move(*mount));
  if (!files.open_file(std::string(kDebugFiles) + "get", O_PATH)) {
    return errorf(EINVAL, "{}: not the mount point of a rocefs that has the file get", mount_point);
  }
  return files;
}

Result<Fd> MountFiles::open_file(const std::string& path, int flags) const {
  if (ended()) return errorf(ENODEV, "{}: the mount has ended", path);
  Fd file = open_below(mount_.root(), path, flags,
                       RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV);
  if (!file) return error_of(path);
  return file;
}

Result<std::string> MountFiles::read(const std::string& path) const {
  Result<Fd> file = open_file(path, O_RDONLY | O_NONBLOCK);
  if (!file) return file.error();
  struct stat status {};
  if (::fstat(file->get(), &status) != 0) return error_of(path);
  if (!S_ISREG(status.st_mode)) return errorf(EISDIR, "{}: not a file", path);
  std::string text;
  char part[1 << 16];
  for (ssize_t size; (size = ::read(file->get(), part, sizeof part)) != 0;) {
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return error_of(path);
    text.append(part, static_cast<size_t>(size));
    if (text.size() > kMaxText) return errorf(EFBIG, "{}: longer than 8 MiB", path);
  }
  return text;
}

Result<void> MountFiles::store(const std::string& path, std::string_view text) const {
  Result<Fd> file = open_file(path, O_WRONLY);
  if (!file) return file.error();
  if (text.empty()) text = "\n";  // a write of no octets does not reach the mount
  const ssize_t taken = ::write(file->get(), text.data(), text.size());
  if (taken < 0) return error_of(path);
  if (static_cast<size_t>(taken) != text.size()) {
    return errorf(EIO, "{}: {} of {} bytes taken", path, taken, text.size());
  }
  return {};
}

Result<std::vector<MountFiles::Entry>> MountFiles::list(const std::string& path) const {
  Result<Fd> directory = open_file(path.empty() ? "." : path, O_RDONLY | O_DIRECTORY);
  if (!directory) return directory.error();
  std::unique_ptr<DIR, int (*)(DIR*)> open(::fdopendir(directory->release()), ::closedir);
  if (!open) return error_of(path);
  std::vector<Entry> entries;
  while (const dirent* found = ::readdir(open.get())) {
    const std::string_view name = found->d_name;
    if (name == "." || name == "..") continue;
    struct stat status {};
    if (::fstatat(::dirfd(open.get()), found->d_name, &status, 0) != 0) continue;
    Entry entry{std::string(name), Entry::Kind::kOther};
    if (S_ISDIR(status.st_mode)) entry.kind = Entry::Kind::kDirectory;
    if (S_ISREG(status.st_mode)) entry.kind = Entry::Kind::kFile;
    entry.readable = (status.st_mode & 0444) != 0;
    entry.writable = (status.st_mode & 0222) != 0;
    entries.push_back(std::move(entry));
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return ::strverscmp(a.name.c_str(), b.name.c_str()) < 0;
  });
  return entries;
}

}  // namespace rocefs
