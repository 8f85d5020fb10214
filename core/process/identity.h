// Rights and Identity: with which credentials a store acts, as far as opening files needs them.
// Rights are those of the opener of the descriptor, as of a sysfs file in Linux (file->f_cred): a
// program with more rights than the user who handed it the descriptor lends it none. All is read
// from the daemon's own /proc while the process waits for an answer: neither a process that gets
// its PID later nor a /proc of its own making can forge it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/fd.h"
#include "core/base/result.h"

namespace rocefs {

// The caller of an operation. pid is 0 when the caller lives in a pid namespace that the daemon
// cannot see.
struct Caller {
  uid_t uid = 0;
  gid_t gid = 0;
  pid_t pid = 0;
  bool operator==(const Caller&) const = default;
};

// A directory as the kernel numbers it; all 0: unknown.
struct Place {
  uint64_t inode = 0, mount = 0;
  uint32_t major = 0, minor = 0;
  bool operator==(const Place&) const = default;
};

struct Rights {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;  // supplementary ones
  // Effective in the daemon's user namespace, a bit each; empty for a process in another one.
  uint64_t capabilities = 0;
  Place root_place;  // unknown for the daemon itself, and for a process that it does not see
  bool operator==(const Rights&) const = default;
};

// The process that opened a file. Its credentials are kept for files that act with them, and lost
// with the worker.
struct Opener {
  Caller caller;
  std::optional<Result<Rights>> rights;
};

// Rights, and where a path begins.
struct Identity : Rights {
  bool daemon = false;  // the daemon itself: no credentials to change
  // Root and working directory (O_PATH). Empty for the daemon itself and for a writer in a process
  // namespace that the daemon does not see: such paths are absolute.
  Fd root, directory;
  bool elsewhere = false;  // the writer's root is not the daemon's
  std::string comm;        // as `ps -o comm` shows it, in one line

  bool operator==(const Identity& other) const;
};
using IdentityPtr = std::shared_ptr<const Identity>;

// Control thread, while the caller waits: it cannot end before it is answered, so its PID stays its
// own. EACCES and the like where the daemon may not read /proc/PID; ESRCH when the process with
// that PID has other credentials than the request.
Result<Rights> rights_of(const Caller& caller);
// The caller's own credentials.
Result<IdentityPtr> identity_of(const Caller& caller);
// The opener's credentials at the root and directory of the writer, who waits. EPERM where
// credentials differ and the roots, too: a path is no longer the one that the opener may reach. Of
// an opener whose credentials are not known only the process itself may act, without capabilities
// that it may have got by exec: ESRCH for another one.
Result<IdentityPtr> identity_of(const Caller& writer, const Opener& opener);
// Identity of stores without a writer: a mount's start values.
IdentityPtr own_identity();

// The process's name, as `ps -o comm` shows it, in one line; empty if it is gone.
std::string comm_of(pid_t pid);

}  // namespace rocefs
