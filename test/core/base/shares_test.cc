// Shares: no user has more than is left for the others.
#include "core/base/shares.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <vector>

using namespace rocefs;

TEST_CASE(
    "shares: a user leaves as much for the others as it holds; a privileged user may take all") {
  Shares shares(100, 10);
  std::vector<Shares::Share> kept;
  auto takes = [&](uid_t user, bool privileged) {
    size_t count = 0;
    for (; Shares::Share share = shares.take(user, privileged); ++count) kept.push_back(share);
    return count;
  };
  CHECK(takes(1, false) == 45);
  CHECK(takes(2, false) == 23);
  CHECK(takes(0, true) == 32);
  kept.clear();
  CHECK(takes(1, false) == 45);
}

TEST_CASE("shares: a share of zero is valid and takes nothing from the pool") {
  Shares shares(100, 0);
  Shares::Share nothing = shares.take(1, false, 0), again = shares.take(1, false, 0);
  Shares::Share some = shares.take(1, false, 50);
  CHECK((nothing && again && some));
  nothing.reset();
  CHECK(!shares.take(1, false, 1));
  some.reset();
  again.reset();
  CHECK(shares.take(1, false, 50));
}

TEST_CASE("shares: the owner that a mount names is privileged") {
  const uid_t owner = ::geteuid() + 4711, other = owner + 1;
  CHECK(!is_privileged(owner));
  name_owner(owner);
  CHECK(is_privileged(owner));
  CHECK(is_privileged(::geteuid()));
  CHECK(!is_privileged(other));
  name_owner(::geteuid());
  CHECK(!is_privileged(owner));
}
