// Umad file through a mount, by system calls.
#include <poll.h>
#include <sys/ioctl.h>

#include "mad_cc/umad/umad_file.h"
#include "test/fs/child.h"
#include "test/here.h"

using namespace rocefs;
using namespace rocefs::mad;
using namespace rocefs::test;

namespace {

// Answers each request after a millisecond; a GetTable with as many octets as its attribute
// modifier. Core thread.
class Answers final : public MadCarrier {
 public:
  explicit Answers(Scheduler& scheduler) : scheduler_(scheduler) {}
  void transmit(MadReceiver& from, const Address&, const Mad& mad) override {
    port_ = &from;
    bool ack = has_rmpp(mad.mgmt_class()) && mad.rmpp_active();
    if (ack && mad.rmpp_type() == kRmppAck) window_ = mad.rmpp_length();
    if (!ack) {
      request_ = mad;
      request_.set_method(mad.method() | kResponseBit);
      next_ = window_ = 1;
    }
    if (!answer_.scheduled()) scheduler_.after(answer_, kMillisecond);
  }

 private:
  void answer(TimeNs) {
    uint32_t length = request_.attribute_modifier(), count = (length + 199) / 200;
    if (request_.method() != kGetTableResp) return port_->receive({.lid = 1}, request_);
    for (; next_ <= std::min(window_, count); ++next_) {
      Mad segment = request_;
      uint8_t flags = kRmppActive;
      uint32_t carries = 0;
      if (next_ == 1) flags |= kRmppFirst, carries = length + count * 20;
      if (next_ == count) flags |= kRmppLast, carries = length - (count - 1) * 200 + 20;
      if (count == 1) carries = length + 20;
      segment.set_rmpp(kRmppData, flags, 0, next_, carries);
      std::fill(segment.bytes.begin() + 56, segment.bytes.end(), static_cast<uint8_t>(next_));
      port_->receive({.lid = 1}, segment);
    }
  }

  Scheduler& scheduler_;
  Event answer_ = event_of<&Answers::answer>(this);
  MadReceiver* port_ = nullptr;
  Mad request_;
  uint32_t next_ = 1, window_ = 1;
};

struct WithUmad : Mounted {
  WithUmad() {
    control([&] {
      memory = ReaderMemory::create(loop);
      tree.add_file("dev/infiniband/umad0",
                    make_umad_file(*engine, port, memory, [](const std::string&) {}));
      engine->start();
    });
    fd = open();
  }
  ~WithUmad() {
    ::close(fd);
    stop();
    session.reset();
    engine->stop();
  }
  int open() { return ::open((path + "/dev/infiniband/umad0").c_str(), O_RDWR | O_CLOEXEC); }
  int add_agent(uint8_t rmpp = 0) {
    REQUIRE(::ioctl(fd, umad::kEnablePkey) == 0);
    umad::Registration asked{};
    asked.qpn = 1;
    asked.mgmt_class = kSubnAdm;
    asked.class_version = 2;
    asked.rmpp_version = rmpp;
    REQUIRE(::ioctl(fd, umad::kRegisterAgent, &asked) == 0);
    return static_cast<int>(asked.agent);
  }
  ssize_t send(uint8_t method, uint32_t modifier, uint64_t tid = 1) {
    umad::Header header{};
    header.timeout_ms = 5000;
    header.qpn = __builtin_bswap32(1);
    header.lid = __builtin_bswap16(1);
    Mad mad;
    mad.bytes = {1, kSubnAdm, 2, method};
    mad.set_tid(tid);
    wire::store32(&mad.bytes[20], modifier);
    std::string bytes = umad::format(header, message_of(mad), 64);
    return ::write(fd, bytes.data(), bytes.size());
  }
  static std::unique_ptr<Engine> make_engine(PollLoop& loop) {
    auto made = Engine::create({}, loop);
    REQUIRE(made);
    return std::move(*made);
  }

  std::unique_ptr<Engine> engine = make_engine(loop);
  Answers answers{engine->scheduler()};
  MadPort port{answers, engine->scheduler()};
  std::shared_ptr<ReaderMemory> memory;
  int fd;
};

// Repeats a read that a signal interrupted: the kernel's late cleanup of an io_uring interrupts its
// creator, and this process has created some.
ssize_t read_through(int fd, void* buffer, size_t size) {
  for (;;) {
    ssize_t got = ::read(fd, buffer, size);
    if (got >= 0 || errno != EINTR) return got;
  }
}

umad::Header header_of(const char* buffer) {
  umad::Header header;
  std::memcpy(&header, buffer, sizeof header);
  return header;
}

}  // namespace

#define NEEDS_IOCTLS()                         \
  if (!fuse_here()) skip("no /dev/fuse here"); \
  if (!passes_ioctls()) skip("an ioctl(2) of an unknown number does not reach its file here")

TEST_CASE("umad: mounted, a program writes a request, and polls for and reads the answer") {
  NEEDS_IOCTLS();
  WithUmad umad;
  CHECK(umad.add_agent() == 0);
  CHECK(umad.send(kGet, 0) == 64 + 256);
  pollfd watch{umad.fd, POLLIN, 0};
  CHECK(::poll(&watch, 1, 20'000) == 1);
  CHECK(watch.revents == POLLIN);
  char buffer[64 + 256];
  CHECK(read_through(umad.fd, buffer, sizeof buffer) == 64 + 256);
  CHECK(header_of(buffer).status == 0);
  ::fcntl(umad.fd, F_SETFL, O_NONBLOCK);
  CHECK(read_through(umad.fd, buffer, sizeof buffer) == -1);
  CHECK(errno == EAGAIN);
}

TEST_CASE("umad: mounted, a long answer shows its length with ENOSPC, and can be read again") {
  NEEDS_IOCTLS();
  WithUmad umad;
  umad.add_agent(1);
  for (bool waits : {true, false}) {
    REQUIRE(umad.send(kGetTable, 1000) == 64 + 256);
    pollfd watch{umad.fd, POLLIN, 0};
    if (!waits) CHECK(::poll(&watch, 1, 20'000) == 1);
    char buffer[2000] = {};
    CHECK(read_through(umad.fd, buffer, 64 + 256) == -1);
    CHECK(errno == ENOSPC);
    CHECK(header_of(buffer).length == 64 + 56 + 1000);
    CHECK(buffer[64 + 255] == 1);
    CHECK(buffer[64 + 256] == 0);
    CHECK(read_through(umad.fd, buffer, sizeof buffer) == 64 + 56 + 1000);
    CHECK(buffer[64 + 56 + 999] == 5);
  }
}

TEST_CASE("umad: mounted, an answer above FUSE's largest transfer is one read(2)") {
  NEEDS_IOCTLS();
  WithUmad umad;
  umad.add_agent(1);
  constexpr uint32_t kLength = 700'000;
  REQUIRE(umad.send(kGetTable, kLength) == 64 + 256);
  std::string buffer(kLength + 4096, 'x');
  char* unaligned = buffer.data() + (reinterpret_cast<uintptr_t>(buffer.data()) % 4096 == 0);
  CHECK(read_through(umad.fd, unaligned, 300'000) == -1);
  CHECK(errno == ENOSPC);
  CHECK(header_of(unaligned).length == 64 + 56 + kLength);
  CHECK(read_through(umad.fd, unaligned, 64 + 56 + kLength) == 64 + 56 + kLength);
  size_t wrong = 0;
  for (uint32_t i = 0; i < kLength; ++i) {
    wrong += static_cast<uint8_t>(unaligned[64 + 56 + i]) != static_cast<uint8_t>(i / 200 + 1);
  }
  CHECK(wrong == 0);
  REQUIRE(umad.send(kGet, 0) == 64 + 256);
  CHECK(read_through(umad.fd, unaligned, 300'000) == 64 + 256);
}

TEST_CASE("umad: mounted, killed programs leave no requests at the port") {
  NEEDS_IOCTLS();
  WithUmad umad;
  for (int i = 0; i < 20; ++i) {
    pid_t pid = ::fork();
    if (pid == 0) {
      ::close(umad.session->descriptor());
      int own = umad.open();
      umad::Registration asked{};
      asked.qpn = 1;
      char message[56 + 256] = {};
      message[8] = 100;  // ms
      message[56] = 1;
      if (::ioctl(own, umad::kRegisterAgent, &asked) != 0) ::_exit(1);
      (void)!::write(own, message, sizeof message);
      for (;;) (void)!::read(own, message, sizeof message);
    }
    if (i % 2 == 0) ::poll(nullptr, 0, 5);
    ::kill(pid, SIGKILL);
    CHECK(WTERMSIG(status_of(pid)) == SIGKILL);
  }
  CHECK(wait_for([&] {
    std::promise<size_t> sends;
    Task ask = [&] { sends.set_value(umad.port.sends_under_way()); };
    return umad.engine->post(ask) && sends.get_future().get() == 0;
  }));
}

TEST_CASE("umad: mounted, removing the device ends reads and polls") {
  NEEDS_IOCTLS();
  WithUmad umad;
  umad.add_agent();
  int other = umad.open();
  auto reads = std::async(std::launch::async, [&] {
    char buffer[400];
    return read_through(umad.fd, buffer, sizeof buffer) < 0 ? errno : 0;
  });
  auto polls = std::async(std::launch::async, [&] {
    pollfd watch{other, POLLIN, 0};
    ::poll(&watch, 1, 20'000);
    return watch.revents;
  });
  ::poll(nullptr, 0, 50);
  umad.control([&] { umad.tree.remove("dev"); });
  CHECK(reads.get() == ENODEV);
  CHECK(polls.get() == (POLLERR | POLLHUP));
  CHECK(umad.send(kGet, 0) == -1);
  CHECK(errno == ENODEV);
  ::close(other);
}
