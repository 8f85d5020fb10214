// Identity: who a store comes from, as far as the opening of files goes. Taken when the store
// arrives, while its writer waits for the answer, from the daemon's own /proc: neither a process
// that gets the writer's number later nor a /proc of the writer's making has a say in it.
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
  // Effective in the daemon's user namespace, a bit each; none of a writer in another one.
  uint64_t capabilities = 0;
  bool daemon = false;  // the daemon itself: there is nothing to take on
  // Where its paths begin (O_PATH). None of a writer in a process namespace that the daemon does
  // not see, and of the daemon itself: they name full paths.
  Fd root, directory;
  bool elsewhere = false;  // its root is not the daemon's
  std::string comm;        // as `ps -o comm` shows it, in one line

  bool operator==(const Identity& other) const;
};
using IdentityPtr = std::shared_ptr<const Identity>;

// Control thread, while the writer waits: it cannot end before it is answered, so that its number
// stays its own. EACCES and the like where the daemon may not see where it is; ESRCH when whoever
// has its number has other credentials than the store came with.
Result<IdentityPtr> identity_of(const Caller& caller);
// For what nobody has stored: the file of a mount's start values.
IdentityPtr own_identity();

// The process's name, as `ps -o comm` shows it, in one line; empty if it is gone.
std::string comm_of(pid_t pid);

}  // namespace rocefs
