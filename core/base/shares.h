// Shares: so many of something for all users, of which none can have so much that the next one gets
// nothing: nobody has more than is left for the others.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>

namespace rocefs {

// Root, and the daemon's own user. Not on a thread that acts as somebody else (EffectiveUser).
bool is_privileged(uid_t user);

// Any thread.
class Shares {
 public:
  // `reserve` of `all` are for the privileged, whom nothing binds but `all`.
  Shares(size_t all, size_t reserve);

  // So many for the user, until the last copy goes, which may outlive this. Null: it has its share.
  using Share = std::shared_ptr<const void>;
  Share take(uid_t user, bool privileged, size_t count = 1);

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace rocefs
