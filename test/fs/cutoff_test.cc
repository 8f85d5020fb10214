// Cutoff: ends the connection of a mount.
#include "fs/cutoff.h"

#include "test/fs/mounted.h"
#include "test/here.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

// Query to the server of the mount.
bool answers(const Mounted& mounted) {
  return Fd(::open(mounted.at("uint").c_str(), O_RDONLY | O_CLOEXEC)).get() >= 0;
}

}  // namespace

TEST_CASE("cutoff: cut() ends the mount it was made for, which stays mounted") {
  if (!fuse_here()) skip("needs /dev/fuse");
  Mounted mounted;
  Cutoff cutoff(mounted_device(mounted.path).value_or(0), mounted.path);
  CHECK(answers(mounted));
  CHECK(cutoff.cut());
  CHECK(!answers(mounted));
  CHECK(mounted_device(mounted.path));
}

// Late guard: without CPU for a while, it finds another mount at the path.
TEST_CASE("cutoff: cut() leaves alone a later mount of the same path and numbers") {
  if (!fuse_here()) skip("needs /dev/fuse");
  if (!numbers_mounts()) skip("needs numbers of mounts that are given once");
  std::string path;
  std::optional<Cutoff> cutoff;
  {
    Mounted first;
    path = first.path;
    cutoff.emplace(mounted_device(path).value_or(0), path);
  }
  REQUIRE(::mkdir(path.c_str(), 0755) == 0);
  Mounted second({}, path);
  (void)cutoff->cut();
  CHECK(answers(second));
}
