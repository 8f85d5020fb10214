// Channel: more requests than may wait, from a socket in the place of the kernel.
#include "fs/channel.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "core/takeover/journal.h"

using namespace rocefs;

namespace {

constexpr uid_t kUser = 1001, kOther = 1002;

// A kernel that asks, and a server whose reads wait for ever.
struct Asked final : ChannelUser {
  Asked() {
    auto made = Journal::create(sizeof(SavedChannel), 1 << 14);
    REQUIRE(made);
    journal = std::move(*made);
    channel_ = std::make_unique<Channel>(*journal, journal->state<SavedChannel>(), nullptr);
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    kernel = ends[0];
    fuse_args arguments = FUSE_ARGS_INIT(0, nullptr);
    fuse_opt_add_arg(&arguments, "test");
    fuse_lowlevel_ops operations{};
    operations.read = [](fuse_req_t request, fuse_ino_t, size_t, off_t, fuse_file_info*) {
      of(request).waiting.push_back(request);
    };
    operations.release = [](fuse_req_t request, fuse_ino_t, fuse_file_info*) {
      fuse_reply_err(request, 0);
    };
    operations.forget = [](fuse_req_t request, fuse_ino_t, uint64_t) {
      ++of(request).forgotten;
      fuse_reply_none(request);
    };
    session = fuse_session_new(&arguments, &operations, sizeof operations,
                               static_cast<ChannelUser*>(this));
    fuse_opt_free_args(&arguments);
    REQUIRE(session);
    REQUIRE(channel_->attach(session, ends[1], *this));
    fuse_init_in init{};
    init.major = FUSE_KERNEL_VERSION;
    init.minor = FUSE_KERNEL_MINOR_VERSION;
    init.max_readahead = 4096;
    REQUIRE(ask(FUSE_INIT, 0, init) == 0);
  }
  ~Asked() override {
    for (fuse_req_t request : waiting) fuse_reply_err(request, EIO), drain();
    fuse_session_destroy(session);
    ::close(kernel);
  }
  static Asked& of(fuse_req_t request) {
    return static_cast<Asked&>(*static_cast<ChannelUser*>(fuse_req_userdata(request)));
  }
  Channel& channel() override { return *channel_; }
  void interrupt(uint64_t key) override { interrupted = key; }

  // The errno of the answer, as the kernel gets it; empty: none yet.
  template <class Body>
  std::optional<int> ask(uint32_t opcode, uid_t user, const Body& body) {
    struct {
      fuse_in_header header;
      Body body;
    } request{};
    request.header.len = sizeof(fuse_in_header) + sizeof body;
    request.header.opcode = opcode;
    request.header.unique = last = last + 2;
    request.header.nodeid = 1;
    request.header.uid = user;
    std::memcpy(&request.body, &body, sizeof body);
    REQUIRE(::send(kernel, &request, request.header.len, 0) == request.header.len);
    REQUIRE(channel_->receive() == Channel::Received::kOne);
    return drain();
  }
  std::optional<int> drain() {
    char answer[4096];
    ssize_t size = ::recv(kernel, answer, sizeof answer, 0);
    if (size < static_cast<ssize_t>(sizeof(fuse_out_header))) return std::nullopt;
    return -reinterpret_cast<fuse_out_header*>(answer)->error;
  }
  std::optional<int> read(uid_t user) { return ask(FUSE_READ, user, fuse_read_in{}); }

  std::unique_ptr<Journal> journal;
  std::unique_ptr<Channel> channel_;
  fuse_session* session = nullptr;
  int kernel = -1;
  uint64_t last = 0;
  std::vector<fuse_req_t> waiting;
  size_t forgotten = 0;
  uint64_t interrupted = 0;
};

}  // namespace

TEST_CASE("channel: waiting requests keep out neither others nor what ends them") {
  Asked asked;
  std::optional<int> said = asked.read(kUser);
  const uint64_t first = asked.last;
  REQUIRE(said == std::nullopt);
  while (!(said = asked.read(kUser)) && asked.waiting.size() < SavedChannel::kMaxInFlight) continue;
  CHECK(said == ENOMEM);
  CHECK(asked.waiting.size() <= SavedChannel::kMaxInFlight / 2);
  CHECK(asked.read(kOther) == std::nullopt);
  while (!(said = asked.read(0)) && asked.waiting.size() < SavedChannel::kMaxInFlight) continue;
  if (!said) said = asked.read(0);
  CHECK(said == ENOMEM);
  CHECK(asked.waiting.size() == SavedChannel::kMaxInFlight);

  CHECK(asked.ask(FUSE_RELEASE, kUser, fuse_release_in{}) == 0);
  CHECK(asked.ask(FUSE_FORGET, kUser, fuse_forget_in{1}) == std::nullopt);
  CHECK(asked.forgotten == 1);
  CHECK(asked.ask(FUSE_INTERRUPT, kUser, fuse_interrupt_in{first}) == std::nullopt);
  CHECK(asked.interrupted == first);

  fuse_reply_err(asked.waiting.back(), EINTR);
  asked.waiting.pop_back();
  CHECK(asked.drain() == EINTR);
  CHECK(asked.read(0) == std::nullopt);
}

TEST_CASE("channel: a request during which three workers have died is refused") {
  Asked asked;
  auto die = [&] {
    asked.channel_->settle_in_flight();
    while (asked.drain()) continue;
  };
  REQUIRE(asked.read(kUser) == std::nullopt);  // a worker that dies now leaves it in the buffer
  die();
  die();
  asked.last += kResendMark - 2;
  CHECK(asked.read(kUser) == std::nullopt);
  die();
  asked.last -= 2;
  CHECK(asked.read(kUser) == EIO);
  CHECK(asked.read(kUser) == std::nullopt);  // another one, resent as well
}
