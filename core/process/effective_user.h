// EffectiveUser: the calling thread acts as another user for as long as this lives, without the
// daemon's capabilities: what the kernel permits then it would permit that user.
//
// The real and the saved user stay the daemon's own: by those the kernel decides whom a user may
// signal, stop or limit.
#pragma once

#include <sys/types.h>

namespace rocefs {

class EffectiveUser {
 public:
  // Whoever is not root, and whom root acts for as root, stays what it is.
  EffectiveUser(uid_t uid, gid_t gid);
  EffectiveUser(const EffectiveUser&) = delete;
  ~EffectiveUser();
  // Whether the thread has taken them, or need not.
  explicit operator bool() const { return ok_; }

 private:
  const gid_t own_group_;
  bool changed_ = false, ok_ = true;
};

}  // namespace rocefs
