// Identity: the credentials of a store's writer, as far as opening files needs them. Taken from the
// daemon's own /proc when the store arrives, while its writer waits for the answer: neither a
// process that gets the writer's PID later nor a /proc made by the writer can forge it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
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
};

struct Identity {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;  // supplementary ones
  // Effective in the daemon's user namespace, a bit each; empty for a writer in another one.
  uint64_t capabilities = 0;
  bool daemon = false;  // the daemon itself: no credentials to change
  // Root and working directory (O_PATH). Empty for the daemon itself and for a writer in a process
  // namespace that the daemon does not see: such paths are absolute.
  Fd root, directory;
  bool elsewhere = false;  // the writer's root is not the daemon's
  std::string comm;        // as `ps -o comm` shows it, in one line

  bool operator==(const Identity& other) const;
};
using IdentityPtr = std::shared_ptr<const Identity>;

// Control thread, while the writer waits: the writer cannot end before it is answered, so its PID
// stays its own. EACCES and the like where the daemon may not read /proc/PID; ESRCH when the
// process with that PID has other credentials than the store.
Result<IdentityPtr> identity_of(const Caller& caller);
// Identity of stores without a writer: a mount's start values.
IdentityPtr own_identity();

// The process's name, as `ps -o comm` shows it, in one line; empty if it is gone.
std::string comm_of(pid_t pid);

}  // namespace rocefs
