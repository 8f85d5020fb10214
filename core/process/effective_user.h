// EffectiveUser: makes the calling thread act as another user while it lives, without the daemon's
// capabilities: the kernel then permits what it permits that user.
//
// The real and the saved user stay the daemon's own: by those the kernel decides which users may
// signal, stop or limit it.
#pragma once

#include <sys/types.h>

namespace rocefs {

class EffectiveUser {
 public:
  // No change if the daemon is not root, or if the user is root.
  EffectiveUser(uid_t uid, gid_t gid);
  EffectiveUser(const EffectiveUser&) = delete;
  ~EffectiveUser();
  // Whether the thread has the credentials, or needs no change.
  explicit operator bool() const { return ok_; }

 private:
  const gid_t own_group_;
  bool changed_ = false, ok_ = true;
};

}  // namespace rocefs
