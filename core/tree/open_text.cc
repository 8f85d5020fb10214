#include "core/tree/open_text.h"

namespace rocefs {

// About 120 of the longest texts, traces of 2 MiB; a single user gets half.
Shares::Share take_open_text(uid_t user, size_t bytes) {
  constexpr size_t kAll = size_t{256} << 20, kForPrivileged = kAll / 8;
  static Shares shares(kAll, kForPrivileged);
  return shares.take(user, is_privileged(user), bytes);
}

}  // namespace rocefs
