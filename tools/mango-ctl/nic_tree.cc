#include "tools/mango-ctl/nic_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

#include "core/base/fd.h"
#include "core/base/text.h"
#include "core/process/bounded_look.h"
#include "core/process/mount_table.h"

namespace rocefs {
namespace {

const std::string kDebug = "kernel/debug/rocefs";
constexpr size_t kMaxStoreBytes = 4095;  // less than a page: the daemon must see the end

std::string real_path(const std::string& path) {
  std::unique_ptr<char, decltype(&std::free)> full(::realpath(path.c_str(), nullptr), std::free);
  return full ? full.get() : "";
}

// Root of the tree at `path`; empty with errno set if there is none.
std::string tree_at(const std::string& path) {
  struct stat status;
  if (::stat((path + "/" + kDebug).c_str(), &status) != 0) return "";
  return real_path(path);
}

std::string environment(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}

Error failure(const std::string& path, int code = errno) {
  return errorf(code, "{}: {}", path, std::strerror(code));
}

std::string_view without_newline(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  return text;
}

Result<std::string> read_all(int fd, const std::string& path) {
  std::string text;
  char part[65536];
  for (;;) {
    ssize_t size = ::pread(fd, part, sizeof part, static_cast<off_t>(text.size()));
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return failure(path);
    if (size == 0) return text;
    text.append(part, static_cast<size_t>(size));
  }
}

std::string last_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

// One write(2); the errno, nothing if all was taken.
std::optional<int> write_once(int fd, std::string_view text) {
  ssize_t size = ::write(fd, text.data(), text.size());
  if (size < 0) return errno;
  if (static_cast<size_t>(size) != text.size()) return EIO;
  return std::nullopt;
}

}  // namespace

Result<NicTree> NicTree::find(const std::string& wanted) {
  std::string named = wanted.empty() ? environment("ROCEFS_MOUNT") : wanted;
  if (!named.empty()) {
    int code = bounded_look(named).code;
    if (code == ETIMEDOUT || could_not_look(code)) {
      return errorf(code, "{}: {}", named, why_not(code));
    }
    std::string root = tree_at(named);
    if (!root.empty()) return NicTree(std::move(root));
    if (errno == ENOTCONN) return errorf(ENOTCONN, "{}: {}", named, why_not(ENOTCONN));
    if (errno == EACCES) return failure(named);
    return errorf(ENOENT, "{}: no rocefs is mounted there", named);
  }
  for (const std::string& sysfs : {environment("SYSFS_PATH"), std::string("/sys")}) {
    std::string root = sysfs.empty() ? "" : tree_at(sysfs);
    if (!root.empty()) return NicTree(std::move(root));
  }
  std::string left_out;
  Result<std::string> mounted = find_rocefs("", left_out);
  std::fputs(left_out.c_str(), stderr);
  if (mounted) return NicTree(std::move(*mounted));
  Error why = mounted.error();
  if (why.code == EINVAL) why.reason += ", or --mount";
  return why;
}

bool NicTree::has(const std::string& path) const {
  return ::access(absolute(path).c_str(), F_OK) == 0;
}

Result<std::string> NicTree::read(const std::string& path) const {
  Fd fd(::open(absolute(path).c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return failure(path);
  return read_all(fd.get(), path);
}

Result<std::string> NicTree::value(const std::string& path) const {
  Result<std::string> text = read(path);
  if (!text) return text;
  return std::string(without_newline(*text));
}

Result<std::vector<std::string>> NicTree::names(const std::string& path) const {
  auto close = [](DIR* directory) { ::closedir(directory); };
  std::unique_ptr<DIR, decltype(close)> open(::opendir(absolute(path).c_str()), close);
  if (!open) return failure(path);
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(open.get())) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  if (errno != 0) return failure(path);
  return names;
}

std::vector<std::string> NicTree::counted(const std::string& path) const {
  Result<std::vector<std::string>> names = this->names(path);
  if (!names) return {};
  std::sort(names->begin(), names->end(), [](const std::string& a, const std::string& b) {
    return ::strverscmp(a.c_str(), b.c_str()) < 0;
  });
  return *names;
}

std::string NicTree::end_of_link(const std::string& path) const {
  char target[PATH_MAX];
  ssize_t size = ::readlink(absolute(path).c_str(), target, sizeof target);
  if (size <= 0) return "";
  std::string_view text(target, static_cast<size_t>(size));
  return std::string(text.substr(text.rfind('/') + 1));
}

Result<void> NicTree::store(const std::string& path, std::string_view text) const {
  if (text.size() > kMaxStoreBytes) {
    return errorf(E2BIG, "{}: longer than {} bytes", path, kMaxStoreBytes);
  }
  Fd fd(::open(absolute(path).c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
  if (!fd) return failure(path);
  std::optional<int> code = write_once(fd.get(), std::string(text) + "\n");
  if (code) return Error{*code, why_refused(path, *code)};
  return {};
}

Result<void> NicTree::store_together(const std::vector<Assignment>& assignments) const {
  Result<void> stored = store(kDebug + "/set", format_assignments(assignments));
  if (stored) return stored;
  // The knob's name, once, is enough: the command line named its directory. A reason that begins
  // with another's is about that one.
  Error why = stored.error();
  for (const Assignment& one : assignments) {
    if (!why.reason.starts_with(one.path + ": ")) continue;
    why.reason.erase(0, one.path.size() + 2);
    bool named = std::any_of(assignments.begin(), assignments.end(), [&](const Assignment& any) {
      return why.reason.starts_with(last_name(any.path) + " ");
    });
    if (!named) why.reason.insert(0, last_name(one.path) + ": ");
    break;
  }
  return why;
}

Result<std::string> NicTree::ask(const std::string& path, std::string_view question) const {
  if (question.size() > kMaxStoreBytes) {
    return errorf(E2BIG, "longer than {} bytes", kMaxStoreBytes);
  }
  Fd fd(::open(absolute(path).c_str(), O_RDWR | O_CLOEXEC));
  if (!fd) return failure(path);
  std::optional<int> code = write_once(fd.get(), question);
  if (code) return Error{*code, why_refused(path, *code)};
  Result<std::string> text = read_all(fd.get(), path);
  if (!text) return text;
  return std::string(without_newline(*text));
}

// Reason in the daemon's log, `[time] rocefs: PATH: REASON (ENAME)` with the path without links. At
// log level err refusals are not logged, and the last one there is older.
std::string NicTree::why_refused(const std::string& path, int code) const {
  std::string plain = std::strerror(code);
  Result<std::string> level = value(kDebug + "/log_level");
  std::string real = real_path(absolute(path));
  if (!level || *level == "err" || !real.starts_with(root_ + "/")) return plain;
  std::string start = "rocefs: " + real.substr(root_.size() + 1) + ": ";
  std::string end = std::string(" (") + strerrorname_np(code) + ")";
  Result<std::string> log = read(kDebug + "/dmesg");
  if (!log) return plain;
  std::string reason = plain;
  for (std::string_view line : split(*log, "\n")) {
    size_t at = line.find(start);
    if (at == line.npos || !line.ends_with(end)) continue;
    line.remove_prefix(at + start.size());
    if (line.size() > end.size()) reason = line.substr(0, line.size() - end.size());
  }
  return reason;
}

std::vector<std::string> NicTree::management_interfaces() const {
  std::vector<std::string> names = counted("class/net");
  std::erase_if(names, [](const std::string& name) { return !name.starts_with("mango_mgmt"); });
  return names;
}

}  // namespace rocefs
