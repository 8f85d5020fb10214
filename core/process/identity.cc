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

// Asks the kernel's own data: no query to a file system that may not answer.
Place place_of(int directory, const char* name) {
  struct statx found;
  int flags = AT_STATX_DONT_SYNC | (*name ? 0 : AT_EMPTY_PATH);
  if (::statx(directory, name, flags, STATX_INO | STATX_MNT_ID, &found) != 0) return {};
  return {found.stx_ino, found.stx_mnt_id, found.stx_dev_major, found.stx_dev_minor};
}

bool same_file(const Place& one, const Place& other) {
  return one != Place{} && one.inode == other.inode && one.major == other.major &&
         one.minor == other.minor;
}

bool same_file(int directory, const char* name, const char* own) {
  return same_file(place_of(directory, name), place_of(AT_FDCWD, own));
}

bool same_place(const Fd& a, const Fd& b) {
  if (!a || !b) return static_cast<bool>(a) == static_cast<bool>(b);
  const Place one = place_of(a.get(), "");
  return one != Place{} && one == place_of(b.get(), "");
}

std::string name_in(std::string comm) {
  if (comm.ends_with('\n')) comm.pop_back();  // the kernel's
  return program_name(comm);
}

Result<Fd> directory_of(const Caller& caller) {
  std::string path = fmt::format("/proc/{}", caller.pid);
  Fd process(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (process) return process;
  return errorf(ESRCH, "the writer's process is not visible: {}", std::strerror(errno));
}

// `process` is the caller's directory in /proc, which never shows another process, even after its
// end.
Result<Rights> read_rights(int process, const Caller& caller) {
  Rights who{caller.uid, caller.gid, {}, 0, place_of(process, "root")};
  std::string status = text_at(process, "status");
  if (!acts_as(status, caller.uid, caller.gid)) {
    return Error{ESRCH, "the writer's PID belongs to another process"};
  }
  who.groups = numbers_of(field_of(status, "Groups:"));
  if (same_file(process, "ns/user", "/proc/self/ns/user")) {
    std::string effective(field_of(status, "CapEff:"));
    who.capabilities = std::strtoull(effective.c_str(), nullptr, 16);
  }
  return who;
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

// With the writer's own credentials.
Result<std::shared_ptr<Identity>> read_identity(const Caller& writer) {
  auto who = std::make_shared<Identity>();
  if (writer.pid <= 0) {
    static_cast<Rights&>(*who) = {writer.uid, writer.gid, {}, 0, {}};
    return who;
  }
  Result<Fd> process = directory_of(writer);
  if (!process) return process.error();
  Result<Rights> own = read_rights(process->get(), writer);
  if (!own) return own.error();
  static_cast<Rights&>(*who) = std::move(*own);
  if (Result<void> read = read_place(process->get(), *who); !read) return read.error();
  who->comm = name_in(text_at(process->get(), "comm"));
  return who;
}

}  // namespace

bool Identity::operator==(const Identity& other) const {
  return uid == other.uid && gid == other.gid && groups == other.groups &&
         capabilities == other.capabilities && daemon == other.daemon && comm == other.comm &&
         elsewhere == other.elsewhere && same_place(root, other.root) &&
         same_place(directory, other.directory);
}

Result<Rights> rights_of(const Caller& caller) {
  if (caller.pid <= 0) return Rights{caller.uid, caller.gid, {}, 0, {}};
  Result<Fd> process = directory_of(caller);
  if (!process) return process.error();
  return read_rights(process->get(), caller);
}

Result<IdentityPtr> identity_of(const Caller& caller) {
  Result<std::shared_ptr<Identity>> who = read_identity(caller);
  if (!who) return who.error();
  return IdentityPtr(std::move(*who));
}

Result<IdentityPtr> identity_of(const Caller& writer, const Opener& opener) {
  if (opener.rights && !*opener.rights) return opener.rights->error();
  if (!opener.rights && writer != opener.caller) {
    return Error{ESRCH, "the worker that knew who opened the file has died: open it again"};
  }
  Result<std::shared_ptr<Identity>> read = read_identity(writer);
  if (!read) return read.error();
  Identity& who = **read;
  if (!opener.rights) {
    if (who.uid != 0) who.capabilities = 0;
    return IdentityPtr(std::move(*read));
  }
  const Rights& opened = **opener.rights;
  Rights moved = opened;  // to the root of the writer
  moved.root_place = who.root_place;
  if (opened.root_place != who.root_place && moved != static_cast<const Rights&>(who)) {
    return Error{EPERM,
                 "the file was opened by a program with other rights and another root directory or "
                 "mount namespace"};
  }
  static_cast<Rights&>(who) = std::move(moved);
  return IdentityPtr(std::move(*read));
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
