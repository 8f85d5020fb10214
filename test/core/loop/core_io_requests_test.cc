// Reads, writes, watches and their ends, with each kind of I/O.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/fd.h"
#include "core/loop/core_io.h"
#include "test/each_loop.h"

using namespace rocefs;

namespace {

std::unique_ptr<CoreIo> made_io(IoKind kind) {
  Result<ChosenIo> chosen = choose_io(kind, 64);
  REQUIRE(chosen);
  REQUIRE(chosen->io->kind() == kind);
  chosen->io->enable();
  return std::move(chosen->io);
}

// The result of a request, told once.
struct Told final : IoListener {
  int result = 0;
  int count = 0;
  void completed(int how, uint32_t) override {
    result = how;
    ++count;
  }
};

struct Heard final : DatagramListener {
  std::vector<std::string> payloads;
  std::vector<bool> truncated;
  size_t control = 0;
  int ended = 0;
  void received(const Datagram& one) override {
    payloads.emplace_back(reinterpret_cast<const char*>(one.payload.data()), one.payload.size());
    truncated.push_back(one.truncated);
    control = one.control.size();
    // The listener may write here.
    std::fill_n(one.payload.data() - Datagram::kHeadroom, Datagram::kHeadroom, uint8_t{0xee});
  }
  void receiving_ended(int code) override { ended = code; }
};

void poll_some(CoreIo& io) {
  for (int i = 0; i < 4; ++i) io.poll();
}

// A socket of the loopback interface that is connected to itself.
Fd echo_socket() {
  Fd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in own{};
  own.sin_family = AF_INET;
  own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof own;
  REQUIRE(::bind(fd.get(), reinterpret_cast<sockaddr*>(&own), length) == 0);
  REQUIRE(::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&own), &length) == 0);
  REQUIRE(::connect(fd.get(), reinterpret_cast<sockaddr*>(&own), length) == 0);
  return fd;
}

struct Ends {
  Fd near, far;
  explicit Ends(int type) {
    int both[2];
    REQUIRE(::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, both) == 0);
    near = Fd(both[0]);
    far = Fd(both[1]);
  }
};

std::span<uint8_t> span_of(std::string& text) {
  return {reinterpret_cast<uint8_t*>(text.data()), text.size()};
}

void ring_bell(const Fd& event) {
  uint64_t one = 1;
  REQUIRE(::write(event.get(), &one, sizeof one) == sizeof one);
}

TimeNs thread_cpu() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * kSecond + now.tv_nsec;
}

// Whether nothing is left that would wake the loop.
bool sleeps(CoreIo& io) {
  poll_some(io);
  TimeNs begin = monotonic_ns();
  io.wait(20 * kMillisecond);
  return monotonic_ns() - begin >= 20 * kMillisecond;
}

}  // namespace

TEST_CASE("core io: reads at once do not wait, others do, and none is done within the call") {
  ON_EACH_LOOP();
  std::unique_ptr<CoreIo> io = made_io(loop_kind);
  Ends ends(SOCK_SEQPACKET);
  std::string texts[3] = {"...", "...", "..."};
  Told told[3];
  io->read(ends.near.get(), span_of(texts[0]), CoreIo::Wait::kAtOnce, told[0]);
  CHECK(told[0].count == 0);
  poll_some(*io);
  CHECK(told[0].count == 1);
  CHECK(told[0].result == -EAGAIN);
  for (int i : {1, 2}) {
    io->read(ends.near.get(), span_of(texts[i]), CoreIo::Wait::kForData, told[i]);
  }
  CHECK(sleeps(*io));
  CHECK(told[1].count + told[2].count == 0);
  for (const char* text : {"one", "two"}) REQUIRE(::send(ends.far.get(), text, 3, 0) == 3);
  io->wait(kNever);
  poll_some(*io);
  std::sort(texts + 1, texts + 3);  // those that wait have no order
  CHECK(texts[1] + texts[2] == "onetwo");
  CHECK(told[1].result == 3);
  CHECK(told[1].count == 1);
  CHECK(told[2].count == 1);
  REQUIRE(::send(ends.far.get(), "six", 3, 0) == 3);
  io->read(ends.near.get(), span_of(texts[0]), CoreIo::Wait::kForData, told[0]);
  CHECK(told[0].count == 1);
  io->wait(kNever);
  CHECK(told[0].count == 1);
  poll_some(*io);
  CHECK(told[0].count == 2);
  CHECK(texts[0] == "six");
}

TEST_CASE("core io: a cancelled read ends with ECANCELED and takes no data, a done one does not") {
  ON_EACH_LOOP();
  std::unique_ptr<CoreIo> io = made_io(loop_kind);
  Ends ends(SOCK_SEQPACKET);
  std::string text = "...";
  Told told, other;
  io->read(ends.near.get(), span_of(text), CoreIo::Wait::kForData, told);
  poll_some(*io);
  io->cancel(told);
  CHECK(told.count == 0);
  poll_some(*io);
  CHECK(told.count == 1);
  CHECK(told.result == -ECANCELED);
  REQUIRE(::send(ends.far.get(), "one", 3, 0) == 3);
  CHECK(sleeps(*io));
  CHECK(text == "...");
  io->read(ends.near.get(), span_of(text), CoreIo::Wait::kForData, told);
  io->submit();
  io->cancel(told);
  io->cancel(other);  // no request
  poll_some(*io);
  CHECK(told.count == 2);
  CHECK(told.result == 3);
  CHECK(other.count == 0);
}

TEST_CASE("core io: a write waits for room, and wakes the loop when it is done") {
  ON_EACH_LOOP();
  std::unique_ptr<CoreIo> io = made_io(loop_kind);
  Ends ends(SOCK_STREAM);
  std::string filling(1 << 20, 'x'), taken(1 << 20, '.');
  while (::send(ends.near.get(), filling.data(), filling.size(), MSG_DONTWAIT) > 0) {
  }
  std::string text = "end";
  iovec parts[] = {{text.data(), 1}, {text.data() + 1, 2}};
  Told told;
  io->write(ends.near.get(), parts, told);
  CHECK(sleeps(*io));
  CHECK(told.count == 0);
  ssize_t got = 0;
  std::string last;
  while ((got = ::recv(ends.far.get(), taken.data(), taken.size(), MSG_DONTWAIT)) > 0) {
  }
  io->wait(kNever);
  poll_some(*io);
  CHECK(told.count == 1);
  CHECK(told.result == 3);
  REQUIRE(::recv(ends.far.get(), taken.data(), taken.size(), MSG_DONTWAIT) == 3);
  CHECK(taken.starts_with("end"));
  CHECK(sleeps(*io));
}

TEST_CASE("core io: a regular file is read and written without a wait, and always has room") {
  ON_EACH_LOOP();
  std::unique_ptr<CoreIo> io = made_io(loop_kind);
  char name[] = "/tmp/rocefs-core-io-XXXXXX";
  Fd file(::mkstemp(name));
  REQUIRE(file);
  ::unlink(name);
  std::string written = "content", text(7, '.');
  iovec part{written.data(), written.size()};
  Told told, room;
  io->write(file.get(), {&part, 1}, told);
  io->await_room(file.get(), room);
  while (told.count + room.count < 2) {
    io->wait(kNever);
    io->poll();
  }
  CHECK(told.result == 7);
  CHECK(room.result > 0);
  REQUIRE(::lseek(file.get(), 0, SEEK_SET) == 0);
  io->read(file.get(), span_of(text), CoreIo::Wait::kForData, told);
  CHECK(told.count == 1);
  while (told.count < 2) {
    io->wait(kNever);
    io->poll();
  }
  CHECK(told.result == 7);
  CHECK(text == "content");
}

TEST_CASE("core io: requests for a descriptor that is closed end with EBADF") {
  ON_EACH_LOOP();
  std::unique_ptr<CoreIo> io = made_io(loop_kind);
  const int closed = echo_socket().get();
  std::string text = "...";
  iovec part{text.data(), 1};
  msghdr message{};
  message.msg_iov = &part, message.msg_iovlen = 1;
  Told told[4];
  io->read(closed, span_of(text), CoreIo::Wait::kForData, told[0]);
  io->write(closed, {&part, 1}, told[1]);
  io->send_message(closed, message, told[2]);
  io->await_room(closed, told[3]);
  poll_some(*io);
  for (const Told& one : told) CHECK(one.result == -EBADF);
  Heard heard;
  io->receive_messages(closed, 4, 64, heard);
  poll_some(*io);
  CHECK(heard.ended == EBADF);
  Fd file(::eventfd(0, EFD_CLOEXEC));
  heard.ended = 0;
  io->receive_messages(file.get(), 4, 64, heard);
  poll_some(*io);
  CHECK(heard.ended == ENOTSOCK);
  CHECK(sleeps(*io));
}

TEST_CASE("core io: a watch that does not read is told of new data, and not again") {
  ON_EACH_LOOP();
  std::unique_ptr<CoreIo> io = made_io(loop_kind);
  Fd bell(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  int rung = 0;
  io->watch(bell.get(), [&] { ++rung; });
  CHECK(sleeps(*io));
  for (int i = 1; i <= 3; ++i) {
    ring_bell(bell);
    io->wait(kNever);
    CHECK(rung == i - 1);
    poll_some(*io);
    CHECK(rung == i);
    CHECK(sleeps(*io));
  }
  CHECK(rung == 3);
  io->unwatch(bell.get());
  ring_bell(bell);
  CHECK(sleeps(*io));
  CHECK(rung == 3);
}

TEST_CASE("core io: a watch may end itself and others, which are not called any more") {
  ON_EACH_LOOP();
  std::unique_ptr<CoreIo> io = made_io(loop_kind);
  constexpr size_t kBells = 8;
  std::vector<Fd> bells;
  int rung = 0;
  while (bells.size() < kBells) bells.emplace_back(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  // Captures of the listener are there until it returns.
  for (const Fd& bell : bells) {
    io->watch(bell.get(), [&, text = std::string(100, 'x')] {
      for (const Fd& one : bells) io->unwatch(one.get());
      if (text.size() == 100) ++rung;
    });
  }
  for (const Fd& bell : bells) ring_bell(bell);
  poll_some(*io);
  CHECK(rung == 1);
  bells.clear();
  CHECK(sleeps(*io));
}

TEST_CASE("core io: with thousands of watches a wake-up costs what it does with a few") {
  ON_EACH_LOOP();
  std::unique_ptr<CoreIo> io = made_io(loop_kind);
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  const rlimit before = limit;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 6000);
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
  const size_t most = limit.rlim_cur - 500;
  std::vector<Fd> bells;
  int rung = 0;
  auto cost_with = [&](size_t count) {
    while (bells.size() < count) {
      bells.emplace_back(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
      io->watch(bells.back().get(), [&] { ++rung; });
    }
    poll_some(*io);
    constexpr int kTurns = 2000;
    rung = 0;
    TimeNs begin = thread_cpu();
    for (int i = 0; i < kTurns; ++i) {
      ring_bell(bells[static_cast<size_t>(i) % count]);
      io->wait(kNever);
      io->poll();
    }
    TimeNs taken = thread_cpu() - begin;
    CHECK(rung == kTurns);
    return taken / kTurns;
  };
  TimeNs few = cost_with(10), many = cost_with(most);
  CAPTURE(few, many, most);
  CHECK(many < 8 * few);
  for (const Fd& bell : bells) io->unwatch(bell.get());
  bells.clear();
  ::setrlimit(RLIMIT_NOFILE, &before);
}

TEST_CASE("core io: datagrams come with ancillary data, and those that are too long are cut") {
  ON_EACH_LOOP();
  std::unique_ptr<CoreIo> io = made_io(loop_kind);
  Fd fd = echo_socket();
  int on = 1;
  Heard heard;
  io->receive_messages(fd.get(), 4, 8, heard);
  std::vector<std::string> sent(4, "bare");
  for (const std::string& one : sent) REQUIRE(::send(fd.get(), one.data(), 4, 0) == 4);
  for (int i = 0; i < 100 && heard.payloads.size() < sent.size(); ++i) io->poll();
  CHECK(heard.control == 0);
  REQUIRE(::setsockopt(fd.get(), IPPROTO_IP, IP_RECVTOS, &on, sizeof on) == 0);
  for (int i = 0; i < 50; ++i) {
    sent.push_back(std::string(static_cast<size_t>(i % 8), static_cast<char>('a' + i % 26)));
    REQUIRE(::send(fd.get(), sent.back().data(), sent.back().size(), 0) >= 0);
  }
  REQUIRE(::send(fd.get(), "123456789", 9, 0) == 9);
  sent.push_back("12345678");
  for (int i = 0; i < 100 && heard.payloads.size() < sent.size(); ++i) io->poll();
  CHECK(heard.payloads == sent);
  CHECK(heard.control == CMSG_SPACE(1));
  REQUIRE(heard.truncated.size() == sent.size());
  CHECK(std::count(heard.truncated.begin(), heard.truncated.end(), true) == 1);
  CHECK(heard.truncated.back());
  CHECK(sleeps(*io));
}

TEST_CASE("core io: a socket whose reception was stopped may be closed and its number used again") {
  ON_EACH_LOOP();
  std::unique_ptr<CoreIo> io = made_io(loop_kind);
  Heard first, second;
  int number = -1;
  {
    Fd fd = echo_socket();
    number = fd.get();
    io->receive_messages(number, 4, 64, first);
    REQUIRE(::send(number, "1", 1, 0) == 1);
    io->stop_receiving(number);
    CHECK(first.payloads == std::vector<std::string>{"1"});
    REQUIRE(::send(number, "2", 1, 0) == 1);
    CHECK(sleeps(*io));
  }
  Fd fd = echo_socket();
  REQUIRE(fd.get() == number);
  io->receive_messages(number, 4, 64, second);
  CHECK(sleeps(*io));
  REQUIRE(::send(number, "3", 1, 0) == 1);
  io->wait(kNever);
  poll_some(*io);
  CHECK(first.payloads.size() == 1);
  CHECK(first.ended == 0);
  CHECK(second.payloads == std::vector<std::string>{"3"});
  io->stop_receiving(number);
}

// A supervisor keeps descriptors that its worker closes.
TEST_CASE("core io: a closed descriptor whose file is open elsewhere wakes nobody") {
  ON_EACH_LOOP();
  std::unique_ptr<CoreIo> io = made_io(loop_kind);
  Heard heard;
  Told told;
  std::string text = "...";
  auto begin = [&](int which, int fd) {
    if (which == 0) io->receive_messages(fd, 4, 64, heard);
    if (which == 1) io->watch(fd, [] {});
    if (which == 2) io->read(fd, span_of(text), CoreIo::Wait::kForData, told);
    if (which == 3) io->await_room(fd, told);
    poll_some(*io);
  };
  auto end = [&](int which, int fd) {
    if (which == 0) io->stop_receiving(fd);
    if (which == 1) io->unwatch(fd);
    if (which == 2) io->cancel(told);
    poll_some(*io);
  };
  for (int which = 0; which < 4; ++which) {
    CAPTURE(which);
    Fd socket = echo_socket(), elsewhere(::dup(socket.get()));
    const int number = socket.get();
    begin(which, number);
    end(which, number);
    socket.reset();
    Fd bell(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    REQUIRE(bell.get() == number);
    int rung = 0;
    io->watch(number, [&] { ++rung; });
    CHECK(sleeps(*io));
    REQUIRE(::send(elsewhere.get(), "x", 1, 0) == 1);
    CHECK(sleeps(*io));
    CHECK(rung == 0);
    ring_bell(bell);
    poll_some(*io);
    CHECK(rung == 1);
    io->unwatch(number);
  }
}

TEST_CASE("core io: sockets that wait for room do not wake the loop until they have it") {
  ON_EACH_LOOP();
  std::unique_ptr<CoreIo> io = made_io(loop_kind);
  constexpr size_t kPairs = 100;
  std::vector<Ends> pairs;
  std::vector<Told> told(kPairs);
  while (pairs.size() < kPairs) pairs.emplace_back(SOCK_DGRAM);
  for (size_t i = 0; i < kPairs; ++i) {
    while (::send(pairs[i].near.get(), "x", 1, MSG_DONTWAIT) == 1) {
    }
    io->await_room(pairs[i].near.get(), told[i]);
  }
  int heard = 0;
  io->watch(pairs[0].near.get(), [&] { ++heard; });
  Told again;
  io->await_room(pairs[0].near.get(), again);
  CHECK(sleeps(*io));
  for (size_t i = 0; i < kPairs; i += 2) {
    char octet;
    while (::recv(pairs[i].far.get(), &octet, 1, MSG_DONTWAIT) == 1) {
    }
  }
  for (int i = 0; i < 10; ++i) io->poll();
  for (size_t i = 0; i < kPairs; ++i) REQUIRE(told[i].count == (i % 2 == 0));
  CHECK(again.count == 1);
  CHECK(sleeps(*io));
  REQUIRE(::send(pairs[0].far.get(), "x", 1, 0) == 1);
  poll_some(*io);
  CHECK(heard > 0);
  while (::send(pairs[0].near.get(), "x", 1, MSG_DONTWAIT) == 1) {
  }
  io->await_room(pairs[0].near.get(), again);
  CHECK(sleeps(*io));
  CHECK(again.count == 1);
  io->cancel(told[1]);
  poll_some(*io);
  CHECK(told[1].result == -ECANCELED);
}

TEST_CASE("core io: owners live until their listener has returned, and else as long as the I/O") {
  ON_EACH_LOOP();
  std::unique_ptr<CoreIo> io = made_io(loop_kind);
  Fd bell(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  struct Owner final : IoOwner, IoListener {
    CoreIo& of;
    int& alive;
    uint64_t count = 0;
    Owner(CoreIo& i, int& a) : of(i), alive(a) { ++alive; }
    ~Owner() override { --alive; }
    void completed(int, uint32_t) override {
      of.release(*this);
      if (alive != 2) alive = 100;
    }
  };
  int alive = 0;
  auto reader = std::make_unique<Owner>(*io, alive), other = std::make_unique<Owner>(*io, alive);
  Owner& reads = *reader;
  io->adopt(std::move(reader));
  io->adopt(std::move(other));
  io->read(bell.get(), {reinterpret_cast<uint8_t*>(&reads.count), 8}, CoreIo::Wait::kForData,
           reads);
  poll_some(*io);
  CHECK(alive == 2);
  ring_bell(bell);
  io->wait(kNever);
  poll_some(*io);
  CHECK(alive == 1);
  io.reset();
  CHECK(alive == 0);
}
