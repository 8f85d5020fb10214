// User programs: the session (libmango's end) with the server, over a socket in a tree.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

#include "core/base/log_limit.h"
#include "core/config/topology.h"
#include "pcc/api/engine_session.h"
#include "pcc/card/program_server.h"
#include "rdma/client/server.h"
#include "rdma/network/fabric.h"
#include "test/rdma/client/lingering.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

// FakeClaims: one device, mb_0. Other threads wait with told().
class FakeClaims final : public PccClaims {
 public:
  Result<void> claim(const std::string& device, const Program& program) override {
    tell(fmt::format("claim {} {} {}", device, program.pid == ::getpid(), program.comm));
    if (endless) return {};
    if (device != "mb_0") return errorf(ENODEV, "there is no {}", device);
    if (owner_) return errorf(EBUSY, "{} is claimed", device);
    owner_ = last = program.id;
    return {};
  }
  void run(const std::string&, uint64_t program, unsigned pollers, Answer<Pages> answer) override {
    std::string said = fmt::format("run {}{}", pollers, by(program));
    if (refuse_run) {
      tell(said);
      return answer(Error{EBUSY, "it runs already"});
    }
    auto made = [](size_t size, SharedMemory::Others others) {
      return std::make_shared<SharedMemory>(std::move(*SharedMemory::create("test", size, others)));
    };
    Pages pages{made(sizeof(rocefs_signals_page), SharedMemory::Others::kRead),
                made(sizeof(rocefs_control_page), SharedMemory::Others::kWrite)};
    pages.signals->at<rocefs_signals_page>(0)->version = ROCEFS_REGISTERS_VERSION;
    pages.signals->at<rocefs_signals_page>(0)->active_count = 5;
    control = pages.control;
    tell(said);  // after the page is written
    answer(pages);
  }
  void stop(const std::string&, uint64_t program, Answer<void> answer) override {
    tell("stop" + by(program));
    answer({});
  }
  void release(const std::string& device, uint64_t program) override {
    tell("release " + device + by(program));
    owner_ = 0;
  }
  void program_log(const std::string& device, LogLevel level, std::string_view text) override {
    tell(fmt::format("log {} {} {}", device, static_cast<int>(level), text));
    std::lock_guard lock(mutex_);
    logged_.emplace_back(text);
  }

  // True if this call is recorded within ten seconds; earlier records are dropped.
  bool told(const std::string& what) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(10), [&] {
      size_t at = text_.find(what + "\n");
      if (at == text_.npos) return false;
      text_.erase(0, at + what.size() + 1);
      return true;
    });
  }

  std::vector<std::string> logged() {
    std::lock_guard lock(mutex_);
    return logged_;
  }

  std::atomic<uint64_t> last{0};
  std::atomic<bool> refuse_run{false};
  std::atomic<bool> endless{false};  // every device exists and is free
  std::shared_ptr<SharedMemory> control;

 private:
  // Marks calls of a program that is not the owner.
  std::string by(uint64_t program) const { return program == owner_ ? "" : ", not by its owner"; }
  void tell(const std::string& what) {
    std::lock_guard lock(mutex_);
    text_ += what + "\n";
    changed_.notify_all();
  }
  uint64_t owner_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string text_;
  std::vector<std::string> logged_;
};

// Rig: a tree with a socket, and no other files.
class Rig {
 public:
  Rig() {
    char name[] = "/tmp/rocefs-program-XXXXXX";
    REQUIRE(::mkdtemp(name));
    root = name;
    std::string directory = root + "/kernel/debug/rocefs";
    std::filesystem::create_directories(directory);
    auto created = Engine::create({ClockMode::kReal, 1, 0}, loop);
    REQUIRE(created);
    engine = std::move(*created);
    fabric =
        std::make_unique<Fabric>(default_topology(), 1, engine->scheduler(), engine->outstanding());
    auto served = ClientServer::create(*engine, *fabric, loop, [](std::string_view) {});
    REQUIRE(served);
    server = std::move(*served);
    programs = std::make_unique<ProgramServer>(
        loop, claims, [this](uid_t uid) { return all_may || (may_claim && uid == ::getuid()); });
    server->hand_claims_to(ROCEFS_OP_PCC_CLAIM, [this](ClientServer::Claim claim) {
      programs->take_over(std::move(claim));
    });
    Fd listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    directory += "/uapi";
    directory.copy(address.sun_path, sizeof address.sun_path - 1);
    REQUIRE(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(::listen(listener.get(), 8) == 0);
    server->listen(std::move(listener));
    engine->start();
    control = std::thread([this] { loop.run(); });
    ::setenv("ROCEFS_MOUNT", root.c_str(), 1);
  }
  ~Rig() {
    ::unsetenv("ROCEFS_MOUNT");
    loop.post([this] {
      server->close_listener();
      server->drop_all();
      programs->drop_all();
    });
    loop.stop();
    control.join();
    engine->stop();
    while (!server->settle()) std::this_thread::yield();
    std::filesystem::remove_all(root);
  }

  std::string root;
  PollLoop loop;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<Fabric> fabric;
  std::unique_ptr<ClientServer> server;
  FakeClaims claims;
  std::unique_ptr<ProgramServer> programs;
  std::atomic<bool> may_claim{true}, all_may{false};
  std::thread control;
};

mango_status_e why_not(const char* device) {
  mango_status_e status = MANGO_STATUS_OK;
  CHECK(open_program_session(device, &status) == nullptr);
  return status;
}

std::unique_ptr<EngineSession> opened() {
  mango_status_e status = MANGO_STATUS_ERROR;
  auto session = open_program_session("mb_0", &status);
  CHECK(status == MANGO_STATUS_OK);
  REQUIRE(session);
  return session;
}

// Claims mb_0 with hand-made messages; returns the socket and the answer.
std::pair<Fd, rocefs_answer> claim_by_hand(Rig& rig, uid_t uid) {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
  Fd ours(ends[0]);
  rig.loop.post([&rig, uid, theirs = ends[1]] {
    ClientServer::Claim claim;
    claim.who.pid = ::getpid();
    claim.who.uid = uid;
    claim.socket = StrangerFd(Fd(theirs), rig.server->closer(), 0);
    claim.pidfd = Fd(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
    claim.request.op = ROCEFS_OP_PCC_CLAIM;
    claim.request.u.claim = {ROCEFS_UAPI_MAGIC, ROCEFS_UAPI_VERSION, "mb_0", "o\ndd"};
    rig.programs->take_over(std::move(claim));
  });
  rocefs_answer answer;
  REQUIRE(::recv(ours.get(), &answer, sizeof answer, 0) == sizeof answer);
  return {std::move(ours), answer};
}
Fd claimed_by_hand(Rig& rig) {
  auto [socket, answer] = claim_by_hand(rig, ::getuid());
  CHECK(answer.error == 0);
  CHECK(rig.claims.told("claim mb_0 true o?dd"));
  return std::move(socket);
}

}  // namespace

TEST_CASE("program: a user who may not set windows is refused, and dmesg reports it") {
  Rig rig;
  rig.may_claim = false;
  CHECK(why_not("mb_0") == MANGO_STATUS_PERMISSION);
  CHECK(rig.claims.told(fmt::format(
      "log mb_0 1 {} (pid {}) is refused: user {} may not set windows: the mount is neither his "
      "nor has allow_pcc",
      program_invocation_short_name, ::getpid(), ::getuid())));
  rig.may_claim = true;
  opened();
}

TEST_CASE("program: a program claims a device, sees the engine's pages and writes its own") {
  Rig rig;
  auto session = opened();
  CHECK(rig.claims.told(fmt::format("claim mb_0 true {}", program_invocation_short_name)));
  EngineSession::Pages pages;
  REQUIRE(session->run(4, &pages) == MANGO_STATUS_OK);
  CHECK(rig.claims.told("run 4"));
  CHECK(pages.signals->active_count == 5);
  pages.control->qps[3].window = 77;
  CHECK(rig.claims.control->at<rocefs_control_page>(0)->qps[3].window == 77);
  session->log(MANGO_LOG_LEVEL_WARN, "[poller 0][QP 17] hot");
  CHECK(rig.claims.told("log mb_0 1 [poller 0][QP 17] hot"));
  session->stop();
  CHECK(rig.claims.told("stop"));
  session.reset();
  CHECK(rig.claims.told("release mb_0"));
}

TEST_CASE("program: a second owner and an unknown device are refused") {
  Rig rig;
  auto session = opened();
  CHECK(why_not("mb_0") == MANGO_STATUS_BUSY);
  CHECK(why_not("mb_7") == MANGO_STATUS_NO_DEVICE);
  CHECK(why_not(std::string(64, 'x').c_str()) == MANGO_STATUS_NO_DEVICE);
  session.reset();
  CHECK(rig.claims.told("release mb_0"));
  opened();
}

TEST_CASE("program: without a tree there is no device") {
  ::setenv("ROCEFS_MOUNT", "/nonexistent", 1);
  CHECK(why_not("mb_0") == MANGO_STATUS_NO_DEVICE);
  ::unsetenv("ROCEFS_MOUNT");
}

TEST_CASE("program: a refused run keeps the claim, and another run can follow") {
  Rig rig;
  auto session = opened();
  EngineSession::Pages pages;
  rig.claims.refuse_run = true;
  CHECK(session->run(1, &pages) == MANGO_STATUS_BUSY);
  CHECK(session->run(0, &pages) == MANGO_STATUS_INVALID_PARAM);
  rig.claims.refuse_run = false;
  CHECK(session->run(1, &pages) == MANGO_STATUS_OK);
}

TEST_CASE("program: a program whose device leaves is told so at its next run") {
  Rig rig;
  auto session = opened();
  EngineSession::Pages pages;
  REQUIRE(session->run(1, &pages) == MANGO_STATUS_OK);
  rig.loop.post([&] { rig.programs->revoke(rig.claims.last); });
  CHECK(rig.claims.told("release mb_0"));
  CHECK(pages.signals->active_count == 5);  // still mapped
  session->stop();
  session->log(MANGO_LOG_LEVEL_INFO, "nobody hears this");
  CHECK(session->run(1, &pages) == MANGO_STATUS_NO_DEVICE);
}

TEST_CASE("program: one user's programs leave room for another's, and for root's") {
  Rig rig;
  rig.all_may = rig.claims.endless = true;
  std::vector<Fd> programs;
  // Number of claims granted to a user, and the error of the next one.
  auto take_all = [&](uid_t uid) {
    for (size_t taken = 0;; ++taken) {
      auto [socket, answer] = claim_by_hand(rig, uid);
      if (answer.error != 0) return std::pair(taken, answer.error);
      programs.push_back(std::move(socket));
    }
  };
  uid_t stranger = ::getuid() + 1000, other = ::getuid() + 1001;
  CHECK(take_all(stranger) == std::pair(size_t{112}, EUSERS));  // half of the unreserved
  CHECK(rig.claims.told(
      fmt::format("log mb_0 1 o?dd (pid {}) is refused: user {} has its share of 256 programs",
                  ::getpid(), stranger)));
  CHECK(take_all(other) == std::pair(size_t{56}, EUSERS));
  CHECK(take_all(::getuid()) == std::pair(size_t{88}, EUSERS));
  programs.erase(programs.begin());
  CHECK(rig.claims.told("release mb_0, not by its owner"));
  CHECK(claim_by_hand(rig, ::getuid()).second.error == 0);
}

TEST_CASE("program: the claim of a dead program is released, even if its child holds the socket") {
  Rig rig;
  int pipe[2];
  REQUIRE(::pipe2(pipe, O_CLOEXEC) == 0);
  pid_t child = ::fork();
  if (child == 0) {
    mango_status_e status;
    auto session = open_program_session("mb_0", &status);
    char byte;
    if (::fork() == 0) {
      ::close(pipe[1]);
      (void)!::read(pipe[0], &byte, 1);  // until the test closes the pipe
    }
    ::_exit(0);
  }
  CHECK(rig.claims.told("release mb_0"));
  ::close(pipe[1]);
  ::close(pipe[0]);
  ::waitpid(child, nullptr, 0);
}

TEST_CASE("program: log lines beyond a hundred per second are counted and dropped") {
  Rig rig;
  constexpr unsigned kLines = 5000;
  Fd ours = claimed_by_hand(rig);
  for (unsigned i = 0; i < kLines; ++i) {
    rocefs_request request{};
    request.op = ROCEFS_OP_PCC_LOG;
    std::snprintf(request.u.log.text, sizeof request.u.log.text, "line %u", i);
    REQUIRE(::send(ours.get(), &request, sizeof request, MSG_NOSIGNAL) == sizeof request);
  }
  ours.reset();
  REQUIRE(rig.claims.told("release mb_0"));
  std::vector<std::string> logged = rig.claims.logged();
  REQUIRE(logged.size() > LogLimit::kLinesPerSecond);
  CHECK(logged[0] == "line 0");
  CHECK(logged[LogLimit::kLinesPerSecond - 1] ==
        fmt::format("line {}", LogLimit::kLinesPerSecond - 1));
  unsigned said = 0, left_out = 0;
  for (const std::string& line : logged) {
    unsigned count;
    if (std::sscanf(line.c_str(), "%u lines suppressed", &count) == 1) {
      left_out += count;
    } else {
      ++said;
    }
  }
  CHECK(said + left_out == kLines);
  CHECK(left_out > 0);
}

TEST_CASE("program: log lines of a lower level take no room from those above") {
  Rig rig;
  Fd ours = claimed_by_hand(rig);
  for (unsigned i = 0; i < 1000; ++i) {
    rocefs_request request{};
    request.op = ROCEFS_OP_PCC_LOG;
    request.u.log.level = static_cast<uint32_t>(i < 999 ? LogLevel::kDebug : LogLevel::kInfo);
    std::snprintf(request.u.log.text, sizeof request.u.log.text, i < 999 ? "detail" : "news");
    REQUIRE(::send(ours.get(), &request, sizeof request, MSG_NOSIGNAL) == sizeof request);
  }
  ours.reset();
  REQUIRE(rig.claims.told("release mb_0"));
  std::vector<std::string> logged = rig.claims.logged();
  CHECK(std::count(logged.begin(), logged.end(), "news") == 1);
}

TEST_CASE("program: an invalid request ends the claim") {
  Rig rig;
  constexpr uint32_t kOps[] = {ROCEFS_OP_HELLO, ROCEFS_OP_PCC_CLAIM, ROCEFS_OP_PCC_RUN};
  for (int kind = 0; kind < 3; ++kind) {
    Fd ours = claimed_by_hand(rig);
    rocefs_request request{};
    request.op = kOps[kind];
    size_t size = kind == 2 ? sizeof request - 1 : sizeof request;
    CHECK(::send(ours.get(), &request, size, MSG_NOSIGNAL) == static_cast<ssize_t>(size));
    CHECK(rig.claims.told("release mb_0"));
    rocefs_answer answer;
    CHECK(::recv(ours.get(), &answer, sizeof answer, 0) <= 0);
  }
}

TEST_CASE("program: a descriptor whose close blocks ends the claim, and blocks nobody") {
  Rig rig;
  Fd ours = claimed_by_hand(rig);
  LingeringSocket lingering;
  REQUIRE(lingering.made());
  std::promise<void> sent;
  rig.loop.post([arrived = sent.get_future().share()] { arrived.wait(); });
  rocefs_request request{};
  request.op = ROCEFS_OP_PCC_LOG;
  CHECK(send_descriptors(ours.get(), &request, sizeof request, {lingering.fd()}));
  lingering.close();
  sent.set_value();
  REQUIRE(rig.claims.told("release mb_0"));
  // The message, and the descriptor in it, go when the loop has handled it.
  std::promise<void> handled;
  rig.loop.post([&] { handled.set_value(); });
  handled.get_future().wait();
  CHECK(rig.server->closer().waiting() == 1);
  CHECK(claimed_by_hand(rig));
}
