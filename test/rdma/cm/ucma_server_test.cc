// Control thread's side of librdmacm's channels: valid and broken input of clients.
#include "rdma/cm/ucma_server.h"

#include <array>
#include <future>

#include "core/process/open_files.h"
#include "rdma/uapi/cm.h"
#include "test/here.h"
#include "test/rdma/client/hostile.h"
#include "test/rdma/client/lingering.h"
#include "test/rdma/cm/rig.h"
#include "test/skip.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

// Server with clients that pretend to be processes chosen by the test.
struct Office {
  ServerRig rig;
  std::unique_ptr<Cma> cma;
  std::unique_ptr<Ucma> ucma;
  std::unique_ptr<UcmaServer> server;
  std::string log;

  // Runs `look` on the control thread.
  template <class Look>
  auto on_control(Look look) {
    std::promise<decltype(look())> told;
    rig.loop.post([&] { told.set_value(look()); });
    return told.get_future().get();
  }
  Office() {
    rig.on_core([&] {
      cma = std::make_unique<Cma>(*rig.fabric, 0);
      ucma = std::make_unique<Ucma>(*cma);
      return true;
    });
    on_control([&] {
      auto write = [this](std::string_view line) { log += line, log += '\n'; };
      server = std::make_unique<UcmaServer>(*rig.engine, rig.loop, *ucma, write);
      return true;
    });
  }
  ~Office() {
    on_control([&] { return server.reset(), true; });
    CHECK(ids() == 0);  // all clients are gone
    rig.on_core([&] { return ucma.reset(), cma.reset(), true; });
  }
  size_t ids() {
    return rig.on_core([&] { return ucma->ids(); });
  }
  size_t channels() {
    return on_control([&] { return server->count(); });
  }
  bool await_channels(size_t wanted) {
    auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (channels() != wanted && std::chrono::steady_clock::now() < end) ::usleep(500);
    return channels() == wanted;
  }
  std::string take_log() {
    return on_control([&] { return std::exchange(log, {}); });
  }
};

// A client's end of a channel.
struct Desk {
  Fd commands, events;
  rocefs_answer opened{};

  explicit Desk(Office& office, pid_t pid = 1, uint32_t magic = ROCEFS_UAPI_MAGIC) {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
    commands = Fd(ends[0]);
    office.on_control([&] {
      ClientServer::Claim claim{
          StrangerFd(Fd(ends[1]), office.rig.server->closer(), 1000), Fd(), {pid, 1000, 1000}, {}};
      claim.request.u.hello.magic = magic;
      claim.request.u.hello.version = ROCEFS_UAPI_VERSION;
      std::strcpy(claim.request.u.hello.comm, "test");
      office.server->take_over(std::move(claim));
      return true;
    });
    std::vector<Fd> fds;
    REQUIRE(TestClient::take(commands.get(), &opened, sizeof opened, fds));
    if (!fds.empty()) events = std::move(fds[0]);
  }
  void send(const std::vector<uint8_t>& octets) {
    REQUIRE(::send(commands.get(), octets.data(), octets.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(octets.size()));
  }
  // Bytes of a librdmacm command behind their length header.
  static std::vector<uint8_t> framed(rocefs_cm_command frame, const std::vector<uint8_t>& octets) {
    std::vector<uint8_t> all(sizeof frame + octets.size());
    std::memcpy(all.data(), &frame, sizeof frame);
    std::copy(octets.begin(), octets.end(), all.begin() + sizeof frame);
    return all;
  }
  struct Answer {
    rocefs_cm_answer header{};
    std::array<uint32_t, ROCEFS_CM_MAX_ANSWER / 4> words{};
  };
  // Number of octets received; 0 when the far end is closed.
  static ssize_t receive(const Fd& from, Answer& answer) {
    pollfd comes{from.get(), POLLIN, 0};
    if (::poll(&comes, 1, 10000) != 1) return -1;
    return ::recv(from.get(), &answer, sizeof answer, MSG_DONTWAIT);
  }
  Answer ask(const std::vector<uint8_t>& octets, uint64_t other = 0) {
    send(framed({static_cast<uint32_t>(octets.size()), 0, other}, octets));
    Answer answer;
    ssize_t got = receive(commands, answer);
    REQUIRE(got == static_cast<ssize_t>(sizeof answer.header + answer.header.size));
    return answer;
  }
  static std::vector<uint8_t> create_id(uint16_t out = sizeof(ucma::IdAnswer)) {
    ucma::CreateId body{};
    body.space = static_cast<uint16_t>(PortSpace::kTcp);
    return Program::octets(ucma::Command::kCreateId, body, out);
  }
  uint32_t create() {
    Answer answer = ask(create_id());
    REQUIRE((answer.header.error == 0 && answer.header.size == sizeof(ucma::IdAnswer)));
    return answer.words[0];
  }
  bool ended() {
    for (const Fd* end : {&commands, &events}) {
      pollfd closes{end->get(), 0, 0};
      if (::poll(&closes, 1, 10000) != 1) return false;
    }
    return true;
  }
};

// Opens as many channels as this user gets, and keeps them.
struct Greed {
  std::atomic<int> taken{0}, refusal{0};
};
int take_all(const ServerRig& rig, uid_t user, Greed& greed) {
  if (::setresgid(user, user, user) != 0 || ::setresuid(user, user, user) != 0) return 2;
  std::vector<std::pair<TestClient, TestClient::Answer>> channels;
  while (greed.refusal == 0) {
    TestClient client(rig, false);
    if (!client.greeted()) {  // until the threads of earlier clients have ended
      if (client.refusal() != EUSERS) return 3;
      ::usleep(500);
      continue;
    }
    rocefs_request request{};
    request.op = ROCEFS_OP_CM_OPEN;
    request.u.hello.magic = ROCEFS_UAPI_MAGIC;
    request.u.hello.version = ROCEFS_UAPI_VERSION;
    std::strcpy(request.u.hello.comm, "greedy");
    TestClient::Answer answer = client.ask(request);
    if (answer.said.error == 0) {
      channels.emplace_back(std::move(client), std::move(answer));
      ++greed.taken;
    } else {
      greed.refusal = answer.said.error;
    }
  }
  for (;;) ::pause();
}

// Blocks the core while it exists.
struct Held {
  std::promise<void> over;
  explicit Held(Office& office) {
    Task wait = [until = over.get_future().share()] { until.wait(); };
    REQUIRE(office.rig.engine->post(wait));
  }
  ~Held() { over.set_value(); }
};

}  // namespace

TEST_CASE("ucma server: an invalid command ends its own channel only") {
  Office office;
  Desk bystander(office, 2);
  uint32_t kept = bystander.create();
  const std::vector<uint8_t> octets = Desk::create_id();
  const auto size = static_cast<uint32_t>(octets.size());
  constexpr uint32_t kMaxCommand = ROCEFS_CM_MAX_COMMAND;
  struct Row {
    const char* what;
    std::vector<uint8_t> sent;
  };
  const Row rows[] = {
      {"less than a header", std::vector<uint8_t>(3)},
      {"octets that do not come", Desk::framed({size + 1, 0, 0}, octets)},
      {"octets that nobody announced", Desk::framed({size - 1, 0, 0}, octets)},
      {"an option that does not come", Desk::framed({size, 1, 0}, octets)},
      {"too long a command",
       Desk::framed({kMaxCommand + 1, 0, 0}, std::vector<uint8_t>(kMaxCommand + 1))},
      {"too long an option",
       Desk::framed({0, kMaxCommand + 1, 0}, std::vector<uint8_t>(kMaxCommand + 1))},
      {"sizes whose sum is as much as comes", Desk::framed({~0u, size + 1, 0}, octets)},
  };
  for (const Row& row : rows) {
    INFO(row.what);
    Desk desk(office);
    desk.create();
    desk.send(row.sent);
    CHECK(desk.ended());
    CHECK(office.take_log() == "pid 1 (test) loses its CM channel: it sends what is no command\n");
    CHECK(office.ids() == 1);
  }
  CHECK(bystander.create() != kept);
  Desk stranger(office, 1, ROCEFS_UAPI_MAGIC + 1);
  CHECK(stranger.opened.error == EPROTO);
  CHECK(office.channels() == 1);
}

TEST_CASE("ucma server: a refused command is answered with its errno and reported in dmesg") {
  Office office;
  Desk desk(office);
  std::vector<uint8_t> longer = Desk::create_id();
  longer[4] += 1;  // header says more than there is
  struct Row {
    const char* what;
    std::vector<uint8_t> octets;
    int error;
    bool told = true;
  };
  const Row rows[] = {
      {"nothing", {}, EINVAL},
      {"half a header", std::vector<uint8_t>(4), EINVAL},
      {"less than it says", longer, EINVAL},
      {"an unknown command", std::vector<uint8_t>(8, 0xff), EINVAL},
      {"another", Program::octets(static_cast<ucma::Command>(99), uint32_t{0}, 0), ENOSYS},
      {"too little room", Desk::create_id(sizeof(ucma::IdAnswer) - 1), ENOSPC},
      {"no event", Program::octets(ucma::Command::kGetEvent, ucma::GetEvent{}, 336), EAGAIN, false},
  };
  for (const Row& row : rows) {
    INFO(row.what);
    Desk::Answer answer = desk.ask(row.octets);
    CHECK(answer.header.error == row.error);
    CHECK(answer.header.size == 0);
    CHECK(office.take_log().starts_with("pid 1 (test) is refused by the CM: ") == row.told);
    CHECK(office.ids() == 0);
  }
  desk.create();
}

TEST_CASE("ucma server: a client that leaves or sends again before it is answered is dropped") {
  Office office;
  Desk bystander(office, 2);
  bystander.create();
  const std::vector<uint8_t> octets = Desk::create_id();
  const auto command = Desk::framed({static_cast<uint32_t>(octets.size()), 0, 0}, octets);
  for (const char* why : {"goes", "closes its events", "asks again"}) {
    INFO(why);
    Desk desk(office);
    {
      Held held(office);
      desk.send(command);
      if (*why == 'a') desk.send(command);
      if (*why == 'g') desk.commands.reset();
      if (*why == 'c') desk.events.reset();
      CHECK(office.await_channels(1));
    }
    CHECK(office.ids() == 1);  // its ids are destroyed with it
    CHECK(office.take_log().empty() == (*why != 'a'));
  }
  bystander.create();
}

TEST_CASE("ucma server: a client cannot use another's id, or take it from its channel") {
  if (!has_option(AF_UNIX, SOCK_SEQPACKET, SOL_SOCKET, SO_COOKIE)) skip("no SO_COOKIE here");
  Office office;
  Desk owner(office, 1), thief(office, 2), sibling(office, 1);
  uint32_t id = owner.create();
  uint64_t name = 0;
  socklen_t size = sizeof name;
  REQUIRE(::getsockopt(owner.events.get(), SOL_SOCKET, SO_COOKIE, &name, &size) == 0);
  auto destroy = Program::octets(ucma::Command::kDestroyId, ucma::DestroyId{0, id, 0}, 4);
  auto listen = Program::octets(ucma::Command::kListen, ucma::Listen{id, 1}, 0);
  auto migrate = Program::octets(ucma::Command::kMigrateId, ucma::MigrateId{0, id, 0}, 4);
  CHECK(thief.create() != id);
  for (const auto& octets : {destroy, listen}) CHECK(thief.ask(octets).header.error == EINVAL);
  CHECK(thief.ask(migrate, name).header.error == EINVAL);
  CHECK(sibling.ask(destroy).header.error == EINVAL);
  CHECK(sibling.ask(migrate, name + 1).header.error == EINVAL);
  CHECK(office.ids() == 2);
  CHECK(sibling.ask(migrate, name).header.error == 0);  // same process
  CHECK(owner.ask(destroy).header.error == EINVAL);
  CHECK(sibling.ask(destroy).header.error == 0);
}

TEST_CASE("ucma server: a descriptor whose close blocks ends its channel, and holds up nobody") {
  for (bool as_command : {true, false}) {
    INFO(as_command);
    Office office;
    Desk bystander(office, 2), desk(office);
    LingeringSocket lingering;
    REQUIRE(lingering.made());
    std::promise<void> sent;
    office.rig.loop.post([arrived = sent.get_future().share()] { arrived.wait(); });
    const Fd& to = as_command ? desk.commands : desk.events;
    std::vector<uint8_t> octets = Desk::create_id();
    octets = Desk::framed({static_cast<uint32_t>(octets.size()), 0, 0}, octets);
    CHECK(send_descriptors(to.get(), octets.data(), octets.size(), {lingering.fd()}));
    lingering.close();
    sent.set_value();
    CHECK(desk.ended());
    // The end can be seen before the control thread has handed the descriptor on.
    CHECK(office.on_control([&] { return office.rig.server->closer().waiting() >= 1; }));
    (void)bystander.create();
  }
}

TEST_CASE("ucma server: one user's channels leave room for another's, and for root's") {
  if (::geteuid() != 0) skip("not root");
  raise_open_files();
  Office office;
  office.on_control([&] {
    office.rig.server->hand_claims_to(ROCEFS_OP_CM_OPEN, [&](ClientServer::Claim claim) {
      office.server->take_over(std::move(claim));
    });
    return true;
  });
  constexpr int kAll = UcmaServer::kMaxChannels - UcmaServer::kReservedChannels;
  Shared<Greed> first, second, root;
  Child one([&] { return take_all(office.rig, 65534, *first); });
  REQUIRE(await([&] { return first->refusal != 0; }));
  CHECK(first->refusal == EMFILE);
  CHECK(first->taken == kAll / 2);
  CHECK(office.take_log() == fmt::format("a CM channel of pid {} (greedy) of user 65534 is "
                                         "refused: it has its share of {} channels\n",
                                         one.pid(), +UcmaServer::kMaxChannels));
  Child other([&] { return take_all(office.rig, 65533, *second); });
  REQUIRE(await([&] { return second->refusal != 0; }));
  CHECK(second->taken == kAll / 4);
  Child owner([&] { return take_all(office.rig, 0, *root); });
  REQUIRE(await([&] { return root->refusal != 0; }));
  CHECK(root->taken == static_cast<int>(UcmaServer::kMaxChannels) - kAll / 2 - kAll / 4);
  owner.kill();
  one.kill();
  CHECK(office.await_channels(kAll / 4));
  Shared<Greed> again;
  Child successor([&] { return take_all(office.rig, 65534, *again); });
  CHECK(await([&] { return again->refusal == EMFILE; }));
}

TEST_CASE("ucma server: refused commands in a loop leave room in dmesg for other lines") {
  Office office;
  Desk desk(office);
  constexpr size_t kCommands = 2000;
  const auto begin = std::chrono::steady_clock::now();
  for (size_t i = 0; i < kCommands; ++i) REQUIRE(desk.ask({}).header.error == EINVAL);
  auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - begin);
  const std::string log = office.take_log();
  auto lines = static_cast<size_t>(std::count(log.begin(), log.end(), '\n'));
  // A second's lines, with the one about those before, in each second that the loop touches.
  CHECK(lines <= (LogLimit::kLinesPerSecond + 1) * static_cast<size_t>(seconds.count() + 2));
  CHECK(lines < kCommands);
}
