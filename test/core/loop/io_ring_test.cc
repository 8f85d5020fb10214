// Limits of the ring's dispatch.
#include "core/loop/io_ring.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <future>
#include <vector>

#include "core/base/fd.h"
#include "core/loop/engine.h"
#include "test/skip.h"

using namespace rocefs;

namespace {

// A socket that sends to itself whenever it has received, twice while there is room: an endless
// flood.
struct Endless final : DatagramListener {
  static constexpr uint64_t kEnd = 2'000'000;
  Fd fd{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  uint64_t count = 0;
  bool speaks = true;

  Endless() {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof name;
    REQUIRE(::bind(fd.get(), reinterpret_cast<sockaddr*>(&name), length) == 0);
    REQUIRE(::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&name), &length) == 0);
    REQUIRE(::connect(fd.get(), reinterpret_cast<sockaddr*>(&name), length) == 0);
  }
  void speak() { (void)!::write(fd.get(), "more", 4); }
  void received(const Datagram&) override {
    if (++count >= kEnd || !speaks) return;
    speak();
    speak();
  }
  void receiving_ended(int code) override { FAIL_CHECK(code); }
};

struct Count final : IoListener {
  uint64_t good = 0;
  void completed(int result, uint32_t) override { good += result == 1; }
};

// A message of one octet, and its result.
struct Note final : IoListener {
  char octet = 0;
  iovec part{&octet, 1};
  msghdr message{};
  int result = 0;
  bool told = false;
  Note() {
    message.msg_iov = &part;
    message.msg_iovlen = 1;
  }
  void completed(int how, uint32_t) override {
    result = how;
    told = true;
  }
};

}  // namespace

TEST_CASE(
    "io ring: a poll is bounded under endless input, and a wait returns while input is left") {
  NEEDS_IO_URING();
  auto ring = IoRing::create(256);
  REQUIRE(ring);
  (*ring)->enable();
  Endless endless;
  (*ring)->receive_messages(endless.fd.get(), 128, 64, endless);
  for (int i = 0; i < 200; ++i) endless.speak();
  for (int i = 0; i < 100; ++i) {
    uint64_t before = endless.count;
    (*ring)->wait(kNever);
    (*ring)->poll();
    REQUIRE(endless.count - before <= 64);
  }
  CHECK(endless.count > 1000);
  endless.speaks = false;
  (*ring)->stop_receiving(endless.fd.get());
  (*ring)->poll();
}

TEST_CASE("io ring: an ICMP error for a sent datagram does not stop reception") {
  NEEDS_IO_URING();
  CHECK(IoRing::can_receive_messages());
  auto ring = IoRing::create(256);
  REQUIRE(ring);
  (*ring)->enable();
  struct Ears final : DatagramListener {
    uint64_t count = 0;
    int ended = 0;
    void received(const Datagram&) override { ++count; }
    void receiving_ended(int code) override { ended = code; }
  } ears;
  Endless here, there;
  sockaddr_in peer{};
  socklen_t length = sizeof peer;
  REQUIRE(::getsockname(there.fd.get(), reinterpret_cast<sockaddr*>(&peer), &length) == 0);
  REQUIRE(::connect(here.fd.get(), reinterpret_cast<sockaddr*>(&peer), length) == 0);
  sockaddr_in own{};
  REQUIRE(::getsockname(here.fd.get(), reinterpret_cast<sockaddr*>(&own), &length) == 0);
  (*ring)->receive_messages(here.fd.get(), 4, 64, ears);
  (*ring)->poll();
  there.fd.reset();  // no receiver: ECONNREFUSED
  for (int i = 0; i < 10; ++i) {
    here.speak();
    (*ring)->poll();
    (*ring)->poll();
  }
  CHECK(ears.ended == 0);
  Fd again(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  REQUIRE(::bind(again.get(), reinterpret_cast<sockaddr*>(&peer), length) == 0);
  REQUIRE(::sendto(again.get(), "x", 1, 0, reinterpret_cast<sockaddr*>(&own), length) == 1);
  for (int i = 0; i < 10; ++i) (*ring)->poll();
  CHECK(ears.count == 1);
}

TEST_CASE("io ring: commands run while datagrams arrive without end") {
  NEEDS_IO_URING();
  PollLoop loop;
  auto engine = Engine::create({}, loop);
  REQUIRE(engine);
  Endless endless;
  auto begin = [&] {
    (*engine)->ring().receive_messages(endless.fd.get(), 64, 64, endless);
    endless.speak();
  };
  Task task = begin;
  REQUIRE((*engine)->post(task));
  (*engine)->start();
  uint64_t seen = 0;
  for (int i = 0; i < 100; ++i) {
    std::promise<uint64_t> told;
    task = [&] { told.set_value(endless.count); };
    REQUIRE((*engine)->post(task));
    seen = told.get_future().get();
  }
  CHECK(seen < Endless::kEnd);  // so there were more to come
  (*engine)->stop();
}

TEST_CASE("io ring: more messages may be sent than the ring has entries") {
  NEEDS_IO_URING();
  auto ring = IoRing::create(2);
  REQUIRE(ring);
  (*ring)->enable();
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, ends) == 0);
  Fd near(ends[0]), far(ends[1]);
  char octet = 'x';
  iovec part{&octet, 1};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  Count sent;
  uint64_t received = 0;
  constexpr uint64_t kMessages = 100;
  for (uint64_t i = 0; i < kMessages; ++i) {
    (*ring)->send_message(near.get(), message, sent);
    if (i % 8 != 7) continue;
    (*ring)->submit();
    while (::recv(far.get(), &octet, 1, 0) == 1) ++received;
  }
  for (int i = 0; i < 1000 && sent.good < kMessages; ++i) {
    (*ring)->poll();
    while (::recv(far.get(), &octet, 1, 0) == 1) ++received;
  }
  CHECK(sent.good == kMessages);
  CHECK(received == kMessages);
}

TEST_CASE("io ring: a message without buffer space ends with EAGAIN, and free space is reported") {
  NEEDS_IO_URING();
  auto ring = IoRing::create(256);
  REQUIRE(ring);
  (*ring)->enable();
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, ends) == 0);
  Fd near(ends[0]), far(ends[1]);
  int least = 1;
  REQUIRE(::setsockopt(near.get(), SOL_SOCKET, SO_SNDBUF, &least, sizeof least) == 0);
  constexpr size_t kNotes = 200;
  std::vector<Note> notes(kNotes);
  for (size_t i = 0; i < kNotes; ++i) {
    notes[i].octet = static_cast<char>(i);
    notes[i].part.iov_base = &notes[i].octet;
    notes[i].message.msg_iov = &notes[i].part;
    (*ring)->send_message(near.get(), notes[i].message, notes[i]);
  }
  for (int i = 0; i < 10; ++i) (*ring)->poll();
  size_t sent = 0;
  while (sent < kNotes && notes[sent].result == 1) ++sent;
  REQUIRE(sent > 0);
  REQUIRE(sent < kNotes);
  for (size_t i = sent; i < kNotes; ++i) REQUIRE(notes[i].result == -EAGAIN);
  Note room;
  (*ring)->await_room(near.get(), room);
  (*ring)->poll();
  CHECK(!room.told);
  char octet = 0;
  for (size_t i = 0; i < sent; ++i) {
    REQUIRE(::recv(far.get(), &octet, 1, 0) == 1);
    REQUIRE(octet == static_cast<char>(i));
  }
  (*ring)->poll();
  CHECK(room.told);
}
