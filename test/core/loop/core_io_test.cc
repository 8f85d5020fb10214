// Limits of the dispatch of the packet core's I/O, and order and room of messages.
#include "core/loop/core_io.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <future>
#include <vector>

#include "core/base/fd.h"
#include "core/loop/engine.h"
#include "test/each_loop.h"

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
    "core io: a poll is bounded under endless input, and a wait returns while input is left") {
  ON_EACH_LOOP();
  Result<ChosenIo> chosen = choose_io(loop_kind, 256);
  REQUIRE(chosen);
  CoreIo& io = *chosen->io;
  io.enable();
  Endless endless;
  io.receive_messages(endless.fd.get(), 128, 64, endless);
  for (int i = 0; i < 200; ++i) endless.speak();
  for (int i = 0; i < 100; ++i) {
    uint64_t before = endless.count;
    io.wait(kNever);
    io.poll();
    REQUIRE(endless.count - before <= 64);
  }
  CHECK(endless.count > 1000);
  endless.speaks = false;
  io.stop_receiving(endless.fd.get());
  io.poll();
}

TEST_CASE("core io: several endless sources have one bound, and each its turn") {
  ON_EACH_LOOP();
  Result<ChosenIo> chosen = choose_io(loop_kind, 256);
  REQUIRE(chosen);
  CoreIo& io = *chosen->io;
  io.enable();
  std::array<Endless, 4> endless;
  const std::array<unsigned, 4> buffers{16, 64, 64, 64};
  for (size_t i = 0; i < 4; ++i) {
    io.receive_messages(endless[i].fd.get(), buffers[i], 64, endless[i]);
    for (int n = 0; n < 100; ++n) endless[i].speak();
  }
  auto total = [&] {
    uint64_t sum = 0;
    for (const Endless& one : endless) sum += one.count;
    return sum;
  };
  for (int i = 0; i < 200; ++i) {
    uint64_t before = total();
    io.wait(kNever);
    io.poll();
    REQUIRE(total() - before <= 64);
  }
  for (const Endless& one : endless) CHECK(one.count > 200);
  for (Endless& one : endless) {
    one.speaks = false;
    io.stop_receiving(one.fd.get());
  }
}

TEST_CASE("core io: a message that cannot be sent does not hold up those behind it") {
  ON_EACH_LOOP();
  Result<ChosenIo> chosen = choose_io(loop_kind, 256);
  REQUIRE(chosen);
  CoreIo& io = *chosen->io;
  io.enable();
  Endless here;
  std::vector<char> much(70'000);
  std::array<Note, 5> notes;
  for (size_t i = 0; i < notes.size(); ++i) {
    notes[i].part.iov_base = i == 2 ? much.data() : &notes[i].octet;
    if (i == 2) notes[i].part.iov_len = much.size();
    notes[i].message.msg_iov = &notes[i].part;
    io.send_message(here.fd.get(), notes[i].message, notes[i]);
  }
  for (const Note& one : notes) CHECK(!one.told);
  for (int i = 0; i < 4; ++i) io.poll();
  for (size_t i = 0; i < notes.size(); ++i) CHECK(notes[i].result == (i == 2 ? -EMSGSIZE : 1));
}

TEST_CASE("core io: an ICMP error for a sent datagram does not stop reception") {
  ON_EACH_LOOP();
  Result<ChosenIo> chosen = choose_io(loop_kind, 256);
  REQUIRE(chosen);
  CoreIo& io = *chosen->io;
  io.enable();
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
  io.receive_messages(here.fd.get(), 4, 64, ears);
  io.poll();
  there.fd.reset();  // no receiver: ECONNREFUSED
  for (int i = 0; i < 10; ++i) {
    here.speak();
    io.poll();
    io.poll();
  }
  CHECK(ears.ended == 0);
  Fd again(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  REQUIRE(::bind(again.get(), reinterpret_cast<sockaddr*>(&peer), length) == 0);
  REQUIRE(::sendto(again.get(), "x", 1, 0, reinterpret_cast<sockaddr*>(&own), length) == 1);
  for (int i = 0; i < 10; ++i) io.poll();
  CHECK(ears.count == 1);
}

TEST_CASE("core io: commands run while datagrams arrive without end") {
  ON_EACH_LOOP();
  PollLoop loop;
  auto engine = Engine::create({}, loop);
  REQUIRE(engine);
  Endless endless;
  auto begin = [&] {
    (*engine)->io().receive_messages(endless.fd.get(), 64, 64, endless);
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

TEST_CASE("core io: more messages may be sent than there are entries") {
  ON_EACH_LOOP();
  Result<ChosenIo> chosen = choose_io(loop_kind, 2);
  REQUIRE(chosen);
  CoreIo& io = *chosen->io;
  io.enable();
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
    io.send_message(near.get(), message, sent);
    if (i % 8 != 7) continue;
    io.submit();
    while (::recv(far.get(), &octet, 1, 0) == 1) ++received;
  }
  for (int i = 0; i < 1000 && sent.good < kMessages; ++i) {
    io.poll();
    while (::recv(far.get(), &octet, 1, 0) == 1) ++received;
  }
  CHECK(sent.good == kMessages);
  CHECK(received == kMessages);
}

TEST_CASE("core io: a message without buffer space ends with EAGAIN, and free space is reported") {
  ON_EACH_LOOP();
  Result<ChosenIo> chosen = choose_io(loop_kind, 256);
  REQUIRE(chosen);
  CoreIo& io = *chosen->io;
  io.enable();
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
    io.send_message(near.get(), notes[i].message, notes[i]);
  }
  for (int i = 0; i < 10; ++i) io.poll();
  size_t sent = 0;
  while (sent < kNotes && notes[sent].result == 1) ++sent;
  REQUIRE(sent > 0);
  REQUIRE(sent < kNotes);
  for (size_t i = sent; i < kNotes; ++i) REQUIRE(notes[i].result == -EAGAIN);
  Note room;
  io.await_room(near.get(), room);
  io.poll();
  CHECK(!room.told);
  char octet = 0;
  for (size_t i = 0; i < sent; ++i) {
    REQUIRE(::recv(far.get(), &octet, 1, 0) == 1);
    REQUIRE(octet == static_cast<char>(i));
  }
  io.poll();
  CHECK(room.told);
}
