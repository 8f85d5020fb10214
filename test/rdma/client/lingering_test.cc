// Clients that hand over descriptors whose close(2) blocks: other clients must not wait.
#include "test/rdma/client/lingering.h"

#include "test/here.h"
#include "test/rdma/client/hostile.h"
#include "test/skip.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

rocefs_request request_of(uint32_t op) {
  rocefs_request request{};
  request.op = op;
  request.u.handle = 1;
  return request;
}

// Whether a request is answered soon.
bool is_answered(TestClient& client) {
  client.send(request_of(ROCEFS_OP_QUERY_PORT));
  pollfd ready{client.socket(), POLLIN, 0};
  return ::poll(&ready, 1, 20000) == 1 && client.receive().said.error == 0;
}

size_t waiting_closes(const ServerRig& rig) {
  return rig.server->closer().waiting();
}

struct Attack {
  const char* name;
  uint32_t op;
  size_t descriptors;
  size_t before = 0;     // messages of this many bytes that go first, if any
  bool at_door = false;  // not by a client that has opened a device
};
constexpr Attack kAttacks[] = {
    {"one where none belongs", ROCEFS_OP_QUERY_PORT, 1},
    {"two where one belongs", ROCEFS_OP_CREATE_CHANNEL, 2},
    {"253 of them", ROCEFS_OP_QUERY_PORT, 253},
    {"behind what is no request", ROCEFS_OP_QUERY_PORT, 1, 10},
    {"before the answer", ROCEFS_OP_QUERY_PORT, 1, sizeof(rocefs_request)},
    {"at the door", ROCEFS_OP_QUERY_PORT, 1, 0, true},
};

enum Step { kBegun, kReady, kHeld, kSent, kFailed };

// Sends the descriptor while the server does not receive, so that the message has its last copy.
int attack(const ServerRig& rig, const Attack& how, std::atomic<int>& step) {
  auto failed = [&] { return step = kFailed, 2; };
  LingeringSocket lingering;
  std::optional<TestClient> client;
  if (!how.at_door) client.emplace(rig);
  if (!lingering.made() || (client && client->open() != 0)) return failed();
  rocefs_request request = request_of(how.op);
  step = kReady;
  if (!await([&] { return step == kHeld; })) return failed();
  if (!client) client.emplace(rig, false);
  if (how.before > 0) (void)!::send(client->socket(), &request, how.before, MSG_NOSIGNAL);
  std::vector<int> descriptors(how.descriptors, client->socket());
  descriptors.back() = lingering.fd();
  if (!send_descriptors(client->socket(), &request, sizeof request, descriptors)) return failed();
  lingering.close();
  step = kSent;
  for (;;) ::pause();
}

}  // namespace

TEST_CASE("hostile: a surplus descriptor whose close blocks holds up nobody") {
  if (!tells_cut_descriptors())
    skip("a receiver does not learn here of descriptors beyond its room");
  ServerRig rig;
  Bystander bystander(rig, "closes that block");
  TestClient other(rig);
  REQUIRE(other.open() == 0);
  for (const Attack& how : kAttacks) {
    INFO(how.name);
    Shared<std::atomic<int>> step;
    Child attacker([&] { return attack(rig, how, *step); });
    REQUIRE(await([&] { return *step != kBegun; }));
    REQUIRE(*step == kReady);
    std::atomic<bool> held{false};
    rig.loop.post([&] {
      *step = kHeld;
      held = await([&] { return *step != kHeld; });
    });
    CHECK(is_answered(other));
    CHECK(held);
    CHECK(*step == kSent);
    CHECK(await([&] { return waiting_closes(rig) > 0; }));
    CHECK(TestClient(rig).open() == 0);
    CHECK(is_answered(other));
    attacker.kill();
    CHECK(await([&] { return waiting_closes(rig) == 0; }));
  }
}
