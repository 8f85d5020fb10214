#include "tools/rocefs/host/join.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/fd.h"

namespace rocefs {
namespace {

Error failure(const char* what) {
  return errorf(errno, "{}: {}", what, std::strerror(errno));
}

bool is_own(const char* path, int space) {
  struct stat own, other;
  return ::stat(path, &own) == 0 && ::fstat(space, &other) == 0 && own.st_ino == other.st_ino &&
         own.st_dev == other.st_dev;
}

// Becomes the user and the group that have a number in this user namespace.
Result<void> take_user(const char* map, int (*set)(unsigned, unsigned, unsigned)) {
  unsigned inside;
  std::unique_ptr<FILE, decltype(&std::fclose)> file(std::fopen(map, "re"), std::fclose);
  if (!file || std::fscanf(file.get(), "%u", &inside) != 1) return failure(map);
  if (set(inside, inside, inside) != 0) return failure("the user of this host");
  return {};
}

// Lets the capabilities survive execve(2) of a program without file capabilities.
Result<void> keep_capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
  if (::syscall(SYS_capget, &header, data) != 0) return failure("capabilities");
  for (auto& word : data) word.inheritable = word.permitted;
  if (::syscall(SYS_capset, &header, data) != 0) return failure("capabilities");
  for (unsigned number = 0; number <= CAP_LAST_CAP; ++number) {
    if (!(data[number / 32].permitted >> number % 32 & 1)) continue;
    ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, number, 0, 0);
  }
  return {};
}

using Text = std::unique_ptr<char, decltype(&std::free)>;

// The caller's working directory, which setns(2) into a mount namespace loses.
class WorkingDirectory {
 public:
  static Result<WorkingDirectory> of_caller() {
    WorkingDirectory here;
    if (Text path(::getcwd(nullptr, 0), std::free); path) here.path_ = path.get();
    here.directory_ = Fd(::open(".", O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!here.directory_) return here.refusal();
    return here;
  }

  // Goes by the path where that leads to the same directory, or to what a host has of its own in
  // its place; else by the descriptor: to a directory that has no path on the host.
  Result<void> go_back() const {
    bool found = !path_.empty() && ::chdir(path_.c_str()) == 0;
    if (found && (has_own() || is_here())) return {};
    if (::fchdir(directory_.get()) != 0) return refusal();
    return {};
  }

 private:
  Error refusal() const {
    return failure(("working directory " + (path_.empty() ? "(deleted)" : path_)).c_str());
  }
  bool has_own() const {
    for (std::string_view place : {"/sys", "/dev"}) {
      bool below =
          path_.starts_with(place) && (path_.size() == place.size() || path_[place.size()] == '/');
      if (below) return true;
    }
    return false;
  }
  bool is_here() const {
    struct stat now, wanted;
    return ::stat(".", &now) == 0 && ::fstat(directory_.get(), &wanted) == 0 &&
           now.st_ino == wanted.st_ino && now.st_dev == wanted.st_dev;
  }

  std::string path_;  // empty: it has none
  Fd directory_;
};

}  // namespace

Result<void> join_user(int space) {
  if (is_own("/proc/self/ns/user", space)) return {};
  // Groups of root have no number there.
  if (::geteuid() == 0) (void)::setgroups(0, nullptr);
  if (::setns(space, CLONE_NEWUSER) != 0) return failure("the host's user namespace");
  Result<void> taken = take_user("/proc/self/gid_map", [](unsigned r, unsigned e, unsigned s) {
    return ::setresgid(r, e, s);
  });
  if (taken) {
    taken = take_user("/proc/self/uid_map",
                      [](unsigned r, unsigned e, unsigned s) { return ::setresuid(r, e, s); });
  }
  return taken;
}

Result<void> join_host(const HostNamespaces& namespaces) {
  Result<WorkingDirectory> here = WorkingDirectory::of_caller();
  if (!here) return here.error();
  if (const Fd& user = namespaces[ROCEFS_HOST_USER]) {
    if (Result<void> joined = join_user(user.get()); !joined) return joined;
  }
  constexpr struct {
    rocefs_host_namespace number;
    int kind;
  } kOthers[] = {{ROCEFS_HOST_MNT, CLONE_NEWNS},
                 {ROCEFS_HOST_UTS, CLONE_NEWUTS},
                 {ROCEFS_HOST_NET, CLONE_NEWNET}};
  for (auto [number, kind] : kOthers) {
    if (::setns(namespaces[number].get(), kind) != 0) return failure("a namespace of the host");
  }
  if (Result<void> back = here->go_back(); !back) return back;
  if (::geteuid() == 0) return {};
  return keep_capabilities();
}

}  // namespace rocefs
