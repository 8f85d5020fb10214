#include "tools/rocefs/host/join.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <sys/ioctl.h>
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

bool is_same(int space, int other) {
  struct stat one, two;
  return ::fstat(space, &one) == 0 && ::fstat(other, &two) == 0 && one.st_ino == two.st_ino &&
         one.st_dev == two.st_dev;
}

bool is_own(const char* path, int space) {
  Fd own(::open(path, O_RDONLY | O_CLOEXEC));
  return own && is_same(own.get(), space);
}

// Whether the namespace belongs to this user namespace: who made it had the rights there.
bool belongs_to(const Fd& space, const Fd& user) {
  Fd owner(::ioctl(space.get(), NS_GET_USERNS));
  return owner && is_same(owner.get(), user.get());
}

// Refuses what only someone else can have put together: rights of the caller in mounts that are not
// its own would let any program there pass for the one that it starts.
Result<void> check_makers(const RunningHost& host) {
  for (const Fd& space : host.namespaces) {
    if (!space) return Error{EPROTO, "the engine lacks a namespace of the host"};
  }
  const Fd& user = host.namespaces[ROCEFS_HOST_USER];
  // A network may be a container's, in a user namespace of its own (`rocefs attach`).
  for (rocefs_host_namespace number : {ROCEFS_HOST_MNT, ROCEFS_HOST_UTS}) {
    if (!belongs_to(host.namespaces[number], user))
      return Error{EPERM, "the host's namespaces belong to different users"};
  }
  if (host.of_another && is_own("/proc/self/ns/user", user.get()))
    return Error{EPERM, "another user has made the host, with rights that are yours"};
  return {};
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
  // The maker of the namespace may trace who is in it: not this process while it is root still.
  if (::geteuid() == 0) ::prctl(PR_SET_DUMPABLE, 0);
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

Result<void> join_host(const RunningHost& host) {
  if (Result<void> checked = check_makers(host); !checked) return checked;
  Result<WorkingDirectory> here = WorkingDirectory::of_caller();
  if (!here) return here.error();
  const HostNamespaces& namespaces = host.namespaces;
  Result<void> joined = join_user(namespaces[ROCEFS_HOST_USER].get());
  if (!joined) return joined;
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
