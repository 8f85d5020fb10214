// Clients that violate the protocol of messages: on the socket, with descriptors, in large numbers.
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "test/here.h"
#include "test/rdma/client/hostile.h"
#include "test/skip.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

rocefs_request query_port() {
  rocefs_request request{};
  request.op = ROCEFS_OP_QUERY_PORT;
  request.u.handle = 1;
  return request;
}
rocefs_request hello() {
  static const uint32_t probe = ROCEFS_UAPI_MAGIC;
  rocefs_request request{};
  request.op = ROCEFS_OP_HELLO;
  request.u.hello.magic = ROCEFS_UAPI_MAGIC;
  request.u.hello.version = ROCEFS_UAPI_VERSION;
  std::strcpy(request.u.hello.device, "mb_0");
  request.u.hello.probe = reinterpret_cast<uint64_t>(&probe);
  return request;
}

// So many bytes, with these descriptors.
void send_raw(const TestClient& client, const rocefs_request& request, size_t size,
              const std::vector<int>& fds = {}) {
  std::vector<char> bytes(std::max(size, sizeof request));
  std::memcpy(bytes.data(), &request, sizeof request);
  iovec part{bytes.data(), size};
  std::vector<char> space(CMSG_SPACE(fds.size() * sizeof(int)));
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = space.data();
    message.msg_controllen = space.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    *header = {CMSG_LEN(fds.size() * sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size() * sizeof(int));
  }
  (void)!::sendmsg(client.socket(), &message, MSG_NOSIGNAL);
}

bool is_closed(TestClient& client) {
  pollfd ready{client.socket(), POLLIN, 0};
  return ::poll(&ready, 1, 10000) == 1 && client.receive().closed;
}

}  // namespace

TEST_CASE("hostile: a malformed request ends the connection, an unknown operation is refused") {
  ServerRig rig;
  Bystander bystander(rig, "what is no request");
  for (size_t size : {size_t{1}, size_t{4}, sizeof(rocefs_request) - 1, sizeof(rocefs_request) + 1,
                      size_t{100000}}) {
    INFO(size << " bytes");
    TestClient client(rig);
    REQUIRE(client.open() == 0);
    send_raw(client, query_port(), size);
    CHECK(is_closed(client));
  }
  TestClient second_hello(rig), before_hello(rig), no_op(rig);
  REQUIRE(second_hello.open() == 0);
  CHECK(second_hello.ask(hello()).closed);
  CHECK(before_hello.ask(query_port()).closed);
  REQUIRE(no_op.open() == 0);
  for (uint32_t op : {static_cast<uint32_t>(ROCEFS_OP_COUNT), 1000u, ~0u}) {
    rocefs_request request{};
    request.op = op;
    CHECK(no_op.ask(request).said.error == EOPNOTSUPP);
  }
  CHECK(no_op.ask(query_port()).said.error == 0);
}

TEST_CASE("hostile: a refused HELLO leaves nothing behind, and later requests are answered") {
  ServerRig rig;
  Bystander bystander(rig, "a HELLO that is refused");
  auto try_hello = [&](int wanted, auto spoil) {
    TestClient client(rig);
    rocefs_request request = hello();
    spoil(request.u.hello);
    CHECK(client.ask(request).said.error == wanted);
    pollfd ready{client.socket(), POLLIN, 0};
    client.send(query_port());
    REQUIRE(::poll(&ready, 1, 10000) == 1);
    CHECK(client.receive().said.error != 0);
  };
  try_hello(EPROTO, [](rocefs_hello& h) { h.magic = 1; });
  try_hello(ENODEV, [](rocefs_hello& h) { std::strcpy(h.device, "mb_7"); });
  try_hello(ENODEV, [](rocefs_hello& h) { std::memset(h.device, 'x', sizeof h.device); });
  try_hello(EPERM, [](rocefs_hello& h) { h.probe = 8; });
  try_hello(ENODEV, [](rocefs_hello& h) { std::strcpy(h.device, "mb_0\n[    0.0] a line"); });
  CHECK(rig.logged().find("\n[") == std::string::npos);
}

TEST_CASE("hostile: a client of another version is told both, and so is the log") {
  ServerRig rig;
  Bystander bystander(rig, "a client of another version");
  const std::string reason = "this engine speaks version " + std::to_string(ROCEFS_UAPI_VERSION) +
                             " of the interface for programs, it ";
  for (uint32_t version : {ROCEFS_UAPI_VERSION - 1, ROCEFS_UAPI_VERSION + 1}) {
    TestClient client(rig);
    rocefs_request request = hello();
    request.u.hello.version = version;
    rocefs_answer said = client.ask(request).said;
    CHECK(said.error == EPROTO);
    CHECK(said.u.reason == reason + std::to_string(version));
    CHECK(client.receive().closed);
    CHECK(rig.logged().find(reason + std::to_string(version)) != std::string::npos);
  }
}

TEST_CASE("hostile: a second request before the first answer is answered or ends the connection") {
  ServerRig rig;
  Bystander bystander(rig, "requests in a heap");
  for (int round = 0; round < 50; ++round) {
    TestClient client(rig);
    REQUIRE(client.open() == 0);
    for (int i = 0; i < 20; ++i) client.send(query_port());
    int answers = 0;
    while (!client.receive().closed && ++answers < 20) {
    }
    CHECK(answers >= 0);
  }
}

TEST_CASE("hostile: unexpected descriptors are not kept") {
  if (!tells_cut_descriptors())
    skip("a receiver does not learn here of descriptors beyond its room");
  ServerRig rig;
  Bystander bystander(rig, "descriptors where none belong");
  size_t before = open_descriptors();
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
  Fd one(ends[0]), other(ends[1]);
  for (size_t count : {1, 2, 3, 253}) {
    INFO(count << " descriptors");
    std::vector<int> fds(count, one.get());
    {
      TestClient client(rig);
      REQUIRE(client.open() == 0);
      send_raw(client, query_port(), sizeof(rocefs_request), fds);
      CHECK(is_closed(client));
    }
    TestClient client(rig), greets(rig);
    REQUIRE(client.open() == 0);
    rocefs_request request{};
    request.op = ROCEFS_OP_CREATE_CHANNEL;
    if (count > 1) {  // more than belong there
      send_raw(client, request, sizeof request, fds);
      CHECK(is_closed(client));
      send_raw(greets, hello(), sizeof request, fds);
      CHECK(is_closed(greets));
      continue;
    }
    for (uint64_t name = 1; name <= 50; ++name) {
      request.u.channel = 1;
      send_raw(client, request, sizeof request, fds);
      CHECK(client.receive().said.error == 0);
    }
    send_raw(greets, hello(), sizeof request, fds);
    CHECK(greets.receive().said.error == 0);
  }
  CHECK(descriptors_are_back(rig, before));
}

TEST_CASE("hostile: an invalid or foreign event socket ends the connection") {
  ServerRig rig;
  Bystander bystander(rig, "event sockets that are none");
  int pipe_ends[2], stream_ends[2];
  REQUIRE(::pipe2(pipe_ends, O_CLOEXEC) == 0);
  Fd read_end(pipe_ends[0]), write_end(pipe_ends[1]);
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, stream_ends) == 0);
  Fd stream(stream_ends[0]), stream_end(stream_ends[1]);
  Fd directory(::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  Fd path(::open("/", O_PATH | O_CLOEXEC));
  Fd alone(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  Fd routes(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0));
  size_t before = open_descriptors();
  rocefs_request channel{};
  channel.op = ROCEFS_OP_CREATE_CHANNEL;
  channel.u.channel = 1;
  for (int fd : {read_end.get(), write_end.get(), stream.get(), directory.get(), path.get(),
                 alone.get(), routes.get()}) {
    TestClient client(rig), greets(rig);
    REQUIRE(client.open() == 0);
    CHECK(client.ask(channel, fd).closed);
    CHECK(greets.ask(hello(), fd).closed);
  }
  // A pair that another process has made, like the socket to a service of root.
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
  Fd ours(ends[0]), theirs(ends[1]);
  Child child([&] {
    TestClient client(rig), again(rig);
    if (client.open() != 0 || !client.ask(channel, theirs.get()).closed) return 2;
    // The connection itself, too: the engine has made it.
    if (again.open() != 0 || !again.ask(channel, again.socket()).closed) return 3;
    return 0;
  });
  CHECK(child.wait() == 0);
  int waiting = 0;
  CHECK((::ioctl(read_end.get(), FIONREAD, &waiting) == 0 && waiting == 0));
  CHECK(descriptors_are_back(rig, before));
  TestClient client(rig);
  REQUIRE(client.open() == 0);
  CHECK(client.ask(channel).said.error == EINVAL);
}

TEST_CASE("hostile: the number of channels is limited") {
  ServerRig rig;
  Bystander bystander(rig, "channels without end");
  size_t before = open_descriptors();
  {
    TestClient client(rig);
    REQUIRE(client.open() == 0);
    std::vector<Fd> ours;
    int error = 0;
    for (uint64_t name = 1; name <= 1100 && error == 0; ++name) {
      int ends[2];
      REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
      ours.emplace_back(ends[0]);
      Fd theirs(ends[1]);
      rocefs_request request{};
      request.op = ROCEFS_OP_CREATE_CHANNEL;
      request.u.channel = name;
      error = client.ask(request, theirs.get()).said.error;
    }
    CHECK(error == ENOMEM);
    CHECK(ours.size() == 1025);
    bystander.expect();
  }
  CHECK(descriptors_are_back(rig, before));
}

// fi_cq_test of libfabric found the new one refused: the engine had not noticed the closed ones
// yet.
TEST_CASE("client: as soon as channels are closed there is room for others") {
  ServerRig rig;
  TestClient client(rig);
  REQUIRE(client.open() == 0);
  rocefs_request request{};
  request.op = ROCEFS_OP_CREATE_CHANNEL;
  auto create = [&](std::vector<Fd>& ours) {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
    ours.emplace_back(ends[0]);
    Fd theirs(ends[1]);
    ++request.u.channel;
    return client.ask(request, theirs.get()).said.error;
  };
  for (int turn = 0; turn < 20; ++turn) {
    INFO("turn " << turn);
    std::vector<Fd> ours;
    while (ours.size() < 1024) REQUIRE(create(ours) == 0);
    ours.clear();
    REQUIRE(create(ours) == 0);
  }
}

// fi_cq_test of libfabric asks 32,768 times. Refused clients have been dropped, because they asked
// faster than the descriptors were closed.
TEST_CASE("client: asking for channels in spite of refusals is answered each time") {
  ServerRig rig;
  TestClient client(rig);
  REQUIRE(client.open() == 0);
  std::vector<Fd> ours;
  size_t refused = 0;
  for (uint64_t name = 1; name <= 4000; ++name) {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
    Fd mine(ends[0]), theirs(ends[1]);
    rocefs_request request{};
    request.op = ROCEFS_OP_CREATE_CHANNEL;
    request.u.channel = name;
    auto answer = client.ask(request, theirs.get());
    REQUIRE_FALSE(answer.closed);
    if (answer.said.error == 0) ours.push_back(std::move(mine));
    refused += answer.said.error == ENOMEM;
  }
  CHECK(ours.size() == 1024);
  CHECK(refused == 4000 - 1024);
}

TEST_CASE("hostile: excess connections are closed, and later ones are served") {
  ServerRig rig;
  Bystander bystander(rig, "300 connections");
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur < 2000) skip("too few descriptors are allowed");
  size_t before = open_descriptors();
  {
    std::vector<std::unique_ptr<TestClient>> clients;
    int refused = 0;
    for (int i = 0; i < 300; ++i) {
      clients.push_back(std::make_unique<TestClient>(rig, false));
      refused += !clients.back()->greeted();
    }
    CHECK(refused == 300 - (256 - 2));  // the bystander's are two
    bystander.expect();
  }
  CHECK(descriptors_are_back(rig, before));
  TestClient client(rig);
  CHECK(client.open() == 0);
}

TEST_CASE("hostile: connections that come and go leave no descriptors behind") {
  ServerRig rig;
  Bystander bystander(rig, "connections that come and go");
  size_t before = open_descriptors();
  for (int i = 0; i < 1000; ++i) {
    TestClient client(rig, i % 3 == 0);
    if (i % 3 == 0) client.send(hello());
    if (i % 6 == 0) (void)client.receive();
  }
  CHECK(descriptors_are_back(rig, before));
}

TEST_CASE("hostile: a client that does not read its answers is dropped") {
  ServerRig rig;
  Bystander bystander(rig, "answers that are not taken");
  TestClient client(rig);
  REQUIRE(client.open() == 0);
  bool closed = false;
  int last = 0;
  for (int i = 0; i < 100000 && !closed; ++i) {
    client.send(query_port());
    // The next one when this one has been answered.
    await([&] {
      int waiting = 0;
      pollfd state{client.socket(), 0, 0};
      closed = ::poll(&state, 1, 0) == 1 && (state.revents & POLLHUP);
      ::ioctl(client.socket(), FIONREAD, &waiting);
      return closed || std::exchange(last, waiting) != waiting;
    });
  }
  CHECK(closed);
}

TEST_CASE("hostile: a client that does not read its events loses those without room") {
  ServerRig rig;
  Bystander bystander(rig, "events that are not taken");
  TestClient client(rig);
  REQUIRE(client.open() == 0);
  rocefs_request event{};
  event.op = ROCEFS_OP_PUT_BACK_EVENT;
  for (int i = 0; i < 20000; ++i) REQUIRE(client.ask(event).said.error == 0);
  bystander.expect();
  int taken = 0;
  rocefs_async_event one;
  while (::recv(client.events(), &one, sizeof one, MSG_DONTWAIT) == sizeof one) ++taken;
  CHECK(taken > 0);
  // Messages are sent once there is room again.
  pollfd ready{client.events(), POLLIN, 0};
  CHECK(::poll(&ready, 1, 10000) == 1);
}

TEST_CASE("hostile: queues beyond the limit are refused, and destroyed ones make room") {
  ServerRig rig;
  Bystander bystander(rig, "rings without end");
  TestClient client(rig);
  REQUIRE(client.open() == 0);
  uint32_t pd = client.handle_of(ROCEFS_OP_ALLOC_PD);
  TestClient::Cq cq = client.create_cq(16);
  rocefs_request request{};
  request.op = ROCEFS_OP_CREATE_QP;
  request.u.create_qp = {1, pd, 2, cq.handle, cq.handle, 0, 16384, 16384, 8, 8, 256, 0, 0};
  std::vector<uint32_t> made;
  for (int round = 0; round < 2; ++round) {
    TestClient::Answer answer;
    while ((answer = client.ask(request)).said.error == 0) {
      Mapping touched(std::move(answer.fds.at(0)), answer.said.u.created.size,
                      PROT_READ | PROT_WRITE);
      if (made.size() % 8 == 0)
        std::memset(touched.at<uint8_t>(), 0xff, answer.said.u.created.size);
      made.push_back(answer.said.u.created.handle);
    }
    CHECK(answer.said.error == ENOMEM);
    CHECK(made.size() > 20);
    for (uint32_t handle : made) {
      CHECK(client.destroy(ROCEFS_OP_DESTROY_QP, handle).said.error == 0);
    }
    made.clear();
  }
}

#ifndef __SANITIZE_ADDRESS__  // built with UBSan, which looks at memory through a pipe of its own
TEST_CASE("hostile: without free descriptors a new client is refused, and the others continue") {
  Child child([] {
    ServerRig rig;
    Pair pair(rig, 8192);
    TestClient flooding(rig);
    if (flooding.open() != 0) return 2;
    (void)flooding.handle_of(ROCEFS_OP_ALLOC_PD);  // descriptors of its HELLO are closed by then
    rlimit few{};
    ::getrlimit(RLIMIT_NOFILE, &few);
    few.rlim_cur = open_descriptors() + 32;
    if (::setrlimit(RLIMIT_NOFILE, &few) != 0) return 3;
    std::vector<Fd> held;
    for (;;) {
      Fd one(::dup(0));
      if (!one) break;
      held.push_back(std::move(one));
    }
    held.pop_back();  // for the socket that follows
    TestClient refused(rig, false);
    rocefs_greeting greeting{};
    if (::recv(refused.socket(), &greeting, sizeof greeting, 0) > 0) return 4;
    // The server keeps one descriptor for the next client.
    if (!await([] { return !Fd(::dup(0)); })) return 8;
    rocefs_request request{};
    request.op = ROCEFS_OP_CREATE_CQ;
    request.u.create_cq = {1, 0, 16, 0};
    if (flooding.ask(request).said.error == 0) return 5;
    pair.near.post(pair.near_qp, pair.write(64));
    rocefs_cqe cqe;
    if (!pair.near_cq.wait(cqe) || cqe.status != 0) return 6;
    held.clear();
    TestClient served(rig);
    return served.open() == 0 ? 0 : 7;
  });
  CHECK(child.wait() == 0);
}
#endif

TEST_CASE("hostile: a queue keeps no descriptor open in the engine") {
  ServerRig rig;
  TestClient client(rig);
  REQUIRE(client.open() == 0);
  uint32_t pd = client.handle_of(ROCEFS_OP_ALLOC_PD);
  TestClient::Cq cq = client.create_cq(16);
  size_t before = open_descriptors();
  rocefs_request request{};
  request.op = ROCEFS_OP_CREATE_QP;
  request.u.create_qp = {1, pd, 2, cq.handle, cq.handle, 0, 1, 1, 1, 1, 0, 0, 0};
  for (int i = 0; i < 500; ++i) REQUIRE(client.ask(request).said.error == 0);
  CHECK(descriptors_are_back(rig, before));
}

TEST_CASE("hostile: without a free thread a client is refused, and the others continue") {
  if (::geteuid() != 0) return;
  Child child([] {
    ServerRig rig;
    Pair pair(rig, 8192);
    rlimit none{1, 1};
    // A user other than root, to whom the limit applies.
    if (::setrlimit(RLIMIT_NPROC, &none) != 0 || !become_nobody()) return 3;
    TestClient refused(rig, false);
    rocefs_greeting greeting{};
    if (::recv(refused.socket(), &greeting, sizeof greeting, 0) > 0) return 4;
    pair.near.post(pair.near_qp, pair.write(64));
    rocefs_cqe cqe;
    return pair.near_cq.wait(cqe) && cqe.status == 0 ? 0 : 5;
  });
  CHECK(child.wait() == 0);
}

TEST_CASE("hostile: programs that open and are dropped in a loop leave room in dmesg") {
  ServerRig rig;
  constexpr size_t kPrograms = 600;
  const auto begin = Clock::now();
  for (size_t i = 0; i < kPrograms; ++i) {
    TestClient client(rig);
    REQUIRE(client.open() == 0);
    rocefs_request second{};
    second.op = ROCEFS_OP_HELLO;
    client.send(second);
    REQUIRE(client.receive().closed);
  }
  auto seconds = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - begin);
  const std::string log = rig.logged();
  auto lines = static_cast<size_t>(std::count(log.begin(), log.end(), '\n'));
  CHECK(lines <= (LogLimit::kLinesPerSecond + 1) * static_cast<size_t>(seconds.count() + 2));
  CHECK(log.find(" opens mb_0\n") != std::string::npos);
  CHECK(log.find(" is dropped: it ") != std::string::npos);
}
