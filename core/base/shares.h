// Shares: divides a limited resource among users. A user never holds more than is left for the
// others.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>

namespace rocefs {

// Root, the daemon's own user, and the owner of the mount. Do not call on a thread that acts as
// another user (EffectiveUser).
bool is_privileged(uid_t user);

// Names the owner of the process's mount, where that is not the daemon's user (-o uid=).
void name_owner(uid_t user);

// Any thread.
class Shares {
 public:
  // `reserve` of `all` are for privileged users, who are limited by `all` alone.
  Shares(size_t all, size_t reserve);

  // Takes `count` for the user, until the last copy of the share is gone; a share may outlive this
  // object. Null: the user's share is used up.
  using Share = std::shared_ptr<const void>;
  Share take(uid_t user, bool privileged, size_t count = 1);

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace rocefs
