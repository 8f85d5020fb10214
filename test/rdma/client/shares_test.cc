// Users who take all they can: the next one still gets a share.
#include "test/rdma/client/hostile.h"
#include "test/skip.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

// The number of connections that this user gets and keeps, and the errno of the next one.
struct Greed {
  std::atomic<int> taken{0}, refusal{-1};
};
int take_all(const ServerRig& rig, uid_t user, Greed& greed) {
  if (::setresgid(user, user, user) != 0 || ::setresuid(user, user, user) != 0) return 2;
  std::vector<std::unique_ptr<TestClient>> clients;
  for (;;) {
    clients.push_back(std::make_unique<TestClient>(rig, false));
    if (!clients.back()->greeted()) break;
    ++greed.taken;
  }
  greed.refusal = clients.back()->refusal();
  for (;;) ::pause();
}

}  // namespace

TEST_CASE("shares: one user's clients leave room for another's, and for root's") {
  if (::geteuid() != 0) skip("not root");
  ServerRig rig;
  Shared<Greed> first, second;
  Child one([&] { return take_all(rig, 65534, *first); });
  REQUIRE(await([&] { return first->refusal >= 0; }));
  CHECK(first->taken == 112);  // half of those that are not root's
  CHECK(first->refusal == EUSERS);
  Child other([&] { return take_all(rig, 65533, *second); });
  REQUIRE(await([&] { return second->refusal >= 0; }));
  CHECK(second->taken == 56);
  CHECK(TestClient(rig).open() == 0);
  one.kill();
  // The freed share is available again.
  CHECK(await([&] {
    Child again([&] {
      if (!become_nobody()) return 2;
      return TestClient(rig, false).greeted() ? 0 : 1;
    });
    return again.wait() == 0;
  }));
}
