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

TEST_CASE("shares: one user's queues leave memory for another's, and for root's") {
  if (::geteuid() != 0) skip("not root");
  ServerRig rig;
  // Completion queues of the largest size, of 512 MiB each that are never touched, two a program.
  auto take = [&](uid_t user, Greed& greed) {
    if (::setresgid(user, user, user) != 0 || ::setresuid(user, user, user) != 0) return 2;
    ::prctl(PR_SET_DUMPABLE, 1);  // the daemon looks into its memory
    std::vector<std::unique_ptr<TestClient>> clients;
    rocefs_request request{};
    request.op = ROCEFS_OP_CREATE_CQ;
    request.u.create_cq = {42, 0, ROCEFS_MAX_CQE / 2, 0};
    for (int error = 0; error == 0;) {
      clients.push_back(std::make_unique<TestClient>(rig));
      REQUIRE(clients.back()->open() == 0);
      for (int i = 0; i < 3 && error == 0; ++i) {
        error = clients.back()->ask(request).said.error;
        greed.taken += error == 0;
      }
      if (error != 0) greed.refusal = error;
    }
    for (;;) ::pause();
  };
  Shared<Greed> first, second, root;
  Child one([&] { return take(65534, *first); });
  REQUIRE(await([&] { return first->refusal >= 0; }));
  Child other([&] { return take(65533, *second); });
  REQUIRE(await([&] { return second->refusal >= 0; }));
  CHECK(first->refusal == ENOMEM);
  CHECK(second->refusal == ENOMEM);
  UNSCOPED_INFO("first " << first->taken << ", second " << second->taken);
  CHECK(first->taken > second->taken);
  CHECK(second->taken > 0);
  CHECK(rig.logged().find("of user 65534, is refused: a queue: its user has used up the share") !=
        std::string::npos);
  TestClient owner(rig);
  REQUIRE(owner.open() == 0);
  CHECK(owner.create_cq(1024).entries == 1024);
}
