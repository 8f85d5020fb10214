#include "core/process/identity.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "core/base/text.h"
#include "core/process/process_status.h"

namespace rocefs {
namespace {

// Identity of a file or directory from the kernel's own data: no query to a file system that may
// not answer.
struct Which {
  bool known = false;
  uint64_t inode = 0, mount = 0;
  uint32_t major = 0, minor = 0;
  bool same_file(const Which& other) const {
    return known && other.known && inode == other.inode && major == other.major &&
           minor == other.minor;
  }
};

Which which(int directory, const char* name) {
  struct statx found;
  int flags = AT_STATX_DONT_SYNC | (*name ? 0 : AT_EMPTY_PATH);
  if (::statx(directory, name, flags, STATX_INO | STATX_MNT_ID, &found) != 0) return {};
  return {true, found.stx_ino, found.stx_mnt_id, found.stx_dev_major, found.stx_dev_minor};
}

bool same_file(int directory, const char* name, const char* own) {
  return which(directory, name).same_file(which(AT_FDCWD, own));
}

bool same_place(const Fd& a, const Fd& b) {
  if (!a || !b) return static_cast<bool>(a) == static_cast<bool>(b);
  Which one = which(a.get(), ""), other = which(b.get(), "");
  return one.same_file(other) && one.mount == other.mount;
}

std::string name_in(std::string comm) {
  if (comm.ends_with('\n')) comm.pop_back();  // the kernel's
  return program_name(comm);
}

// `process` is the writer's directory in /proc, which never shows another process, even after its
// end.
Result<void> read_credentials(int process, const Caller& caller, Identity& who) {
  std::string status = text_at(process, "status");
  if (!acts_as(status, caller.uid, caller.gid)) {
    return Error{ESRCH, "the writer's PID belongs to another process"};
  }
  who.groups = numbers_of(field_of(status, "Groups:"));
  if (same_file(process, "ns/user", "/proc/self/ns/user")) {
    std::string effective(field_of(status, "CapEff:"));
    who.capabilities = std::strtoull(effective.c_str(), nullptr, 16);
  }
  return {};
}

Result<void> read_place(int process, Identity& who) {
  constexpr int kFlags = O_PATH | O_DIRECTORY | O_CLOEXEC;
  who.root = Fd(::openat(process, "root", kFlags));
  if (who.root) who.directory = Fd(::openat(process, "cwd", kFlags));
  if (!who.directory) {
    return errorf(errno, "the directory of the writer: {}", std::strerror(errno));
  }
  who.elsewhere =
      !same_file(who.root.get(), "", "/") || !same_file(process, "ns/mnt", "/proc/self/ns/mnt");
  return {};
}

}  // namespace

bool Identity::operator==(const Identity& other) const {
  return uid == other.uid && gid == other.gid && groups == other.groups &&
         capabilities == other.capabilities && daemon == other.daemon && comm == other.comm &&
         elsewhere == other.elsewhere && same_place(root, other.root) &&
         same_place(directory, other.directory);
}

Result<IdentityPtr> identity_of(const Caller& caller) {
  auto who = std::make_shared<Identity>();
  who->uid = caller.uid;
  who->gid = caller.gid;
  if (caller.pid <= 0) return IdentityPtr(who);
  std::string path = fmt::format("/proc/{}", caller.pid);
  Fd process(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!process)
    return errorf(ESRCH, "the writer's process is not visible: {}", std::strerror(errno));
  if (Result<void> read = read_credentials(process.get(), caller, *who); !read) return read.error();
  if (Result<void> read = read_place(process.get(), *who); !read) return read.error();
  who->comm = name_in(text_at(process.get(), "comm"));
  return IdentityPtr(who);
}

IdentityPtr own_identity() {
  auto who = std::make_shared<Identity>();
  who->uid = ::geteuid();
  who->gid = ::getegid();
  who->daemon = true;
  return who;
}

std::string comm_of(pid_t pid) {
  return name_in(text_at(AT_FDCWD, fmt::format("/proc/{}/comm", pid).c_str()));
}

}  // namespace rocefs
