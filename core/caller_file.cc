#include "core/caller_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <vector>

#include "core/text.h"

namespace rocefs {
namespace {

Error failure(int code, std::string_view what) {
  return errorf(code, "{}: {}", what, std::strerror(code));
}

// The calls that change one thread only; glibc's wrappers change the whole process.
long thread_setfsuid(uid_t uid) {
  return ::syscall(SYS_setfsuid, uid);
}
long thread_setfsgid(gid_t gid) {
  return ::syscall(SYS_setfsgid, gid);
}
long thread_setgroups(const std::vector<gid_t>& groups) {
  return ::syscall(SYS_setgroups, groups.size(), groups.data());
}

std::vector<gid_t> groups_of(pid_t pid) {
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  std::string line;
  std::vector<gid_t> groups;
  while (std::getline(status, line)) {
    if (line.rfind("Groups:", 0) != 0) continue;
    std::istringstream words(line.substr(7));
    for (gid_t group; words >> group;) groups.push_back(group);
  }
  return groups;
}

bool same_file(const char* a, const std::string& b) {
  struct stat one, other;
  return ::stat(a, &one) == 0 && ::stat(b.c_str(), &other) == 0 && one.st_dev == other.st_dev &&
         one.st_ino == other.st_ino;
}

// Puts the thread where the caller is, and back.
class Place {
 public:
  Result<void> enter(pid_t pid) {
    std::string proc = fmt::format("/proc/{}", pid);
    root_ = Fd(::open((proc + "/root").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    Fd cwd(::open((proc + "/cwd").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!root_ || !cwd) return failure(errno, "the directory of the writer");
    old_root_ = Fd(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
    bool here = same_file("/", proc + "/root") && same_file("/proc/self/ns/mnt", proc + "/ns/mnt");
    if (!here) {
      if (::fchdir(root_.get()) != 0 || ::chroot(".") != 0) {
        return failure(errno, "entering the root directory of the writer");
      }
      moved_ = true;
    }
    if (::fchdir(cwd.get()) != 0) return failure(errno, "the directory of the writer");
    return {};
  }
  ~Place() {
    if (!old_root_) return;
    if (::fchdir(old_root_.get()) == 0 && moved_) (void)!::chroot(".");
  }

 private:
  Fd root_, old_root_;
  bool moved_ = false;
};

// Gives the thread the caller's file-system credentials, and takes them away again.
class Credentials {
 public:
  Result<void> take(const Caller& caller) {
    if (caller.uid == ::geteuid() && caller.gid == ::getegid()) return {};
    if (::geteuid() != 0) {
      return errorf(EPERM, "the daemon of user {} cannot open files as user {}", ::geteuid(),
                    caller.uid);
    }
    int count = ::getgroups(0, nullptr);
    old_groups_.resize(static_cast<size_t>(std::max(count, 0)));
    if (count > 0) (void)!::getgroups(count, old_groups_.data());
    taken_ = true;
    if (thread_setgroups(groups_of(caller.pid)) != 0) return failure(errno, "setgroups");
    thread_setfsgid(caller.gid);
    thread_setfsuid(caller.uid);
    // Calls again with an impossible id answer what is in force.
    if (thread_setfsuid(static_cast<uid_t>(-1)) != static_cast<long>(caller.uid) ||
        thread_setfsgid(static_cast<gid_t>(-1)) != static_cast<long>(caller.gid)) {
      return Error{EPERM, "the daemon cannot take the credentials of the writer"};
    }
    return {};
  }
  ~Credentials() {
    if (!taken_) return;
    thread_setfsuid(::geteuid());
    thread_setfsgid(::getegid());
    thread_setgroups(old_groups_);
  }

 private:
  bool taken_ = false;
  std::vector<gid_t> old_groups_;
};

}  // namespace

Result<Fd> open_as(const Caller& caller, const std::string& path, int flags,
                   std::optional<dev_t> own_mount) {
  Place place;
  if (caller.pid > 0) {
    if (Result<void> entered = place.enter(caller.pid); !entered) return entered.error();
  } else if (path.empty() || path[0] != '/') {
    return Error{EINVAL, "the writer's directory is not visible to the daemon: name a full path"};
  }
  Credentials credentials;
  if (Result<void> taken = credentials.take(caller); !taken) return taken.error();
  // Look before truncating: a path on the mount itself, or a FIFO, is not touched.
  if (Fd there(::open(path.c_str(), O_PATH | O_CLOEXEC)); there) {
    struct stat status;
    if (::fstat(there.get(), &status) != 0) return failure(errno, path);
    if (own_mount && status.st_dev == *own_mount) {
      return errorf(EINVAL, "{}: lies on this mount itself", path);
    }
    if (S_ISDIR(status.st_mode)) return failure(EISDIR, path);
    if (!S_ISREG(status.st_mode)) return errorf(EINVAL, "{}: not a regular file", path);
  }
  Fd fd(::open(path.c_str(), flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0644));
  if (!fd) return failure(errno, path);
  struct stat status;
  if (::fstat(fd.get(), &status) != 0) return failure(errno, path);
  if (!S_ISREG(status.st_mode) || (own_mount && status.st_dev == *own_mount)) {
    return errorf(EINVAL, "{}: not a regular file", path);
  }
  return fd;
}

std::string comm_of(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/comm", pid));
  std::string comm(std::istreambuf_iterator<char>(file), {});
  if (comm.ends_with('\n')) comm.pop_back();  // the kernel's
  return program_name(comm);
}

}  // namespace rocefs
