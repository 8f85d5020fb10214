#include "core/process/effective_user.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>

namespace rocefs {
namespace {

// Changes this thread alone: the C library's functions would change all of them.
bool set_effective_group(gid_t gid) {
  return ::syscall(SYS_setresgid, -1, gid, -1) == 0;
}
bool set_effective_user(uid_t uid) {
  return ::syscall(SYS_setresuid, -1, uid, -1) == 0;
}

}  // namespace

// The group first: setting it takes a capability that the change of the user drops.
EffectiveUser::EffectiveUser(uid_t uid, gid_t gid) : own_group_(::getegid()) {
  if (::geteuid() != 0 || uid == 0) return;
  changed_ = true;
  ok_ = set_effective_group(gid) && set_effective_user(uid);
}

// The saved user is root: nothing forbids the way back.
EffectiveUser::~EffectiveUser() {
  if (!changed_) return;
  if (!set_effective_user(0) || !set_effective_group(own_group_)) std::abort();
}

}  // namespace rocefs
