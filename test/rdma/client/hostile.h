// Helpers for tests of hostile clients: a bystander whose traffic must go on, child processes, and
// requests of a lying client.
#pragma once

#include <dirent.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdio>
#include <optional>
#include <random>

#include "test/rdma/client/server_rig.h"

namespace rocefs::test {

using Clock = std::chrono::steady_clock;

// A T that child processes share.
template <class T>
class Shared {
 public:
  Shared() {
    void* at =
        ::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(at != MAP_FAILED);
    at_ = new (at) T;
  }
  Shared(const Shared&) = delete;
  ~Shared() { ::munmap(at_, sizeof(T)); }
  T* operator->() const { return at_; }
  T& operator*() const { return *at_; }

 private:
  T* at_;
};

// A process that runs `body` and ends with what it returns; with 1 if an assertion in it fails. It
// dies with this one.
class Child {
 public:
  template <class Body>
  explicit Child(Body body) {
    pid_ = ::fork();
    REQUIRE(pid_ >= 0);
    if (pid_ > 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    int status = 1;
    try {
      status = body();
    } catch (...) {
    }
    ::_exit(status);
  }
  Child(const Child&) = delete;
  ~Child() {
    signal(SIGKILL);
    (void)wait();
  }
  pid_t pid() const { return pid_; }
  void signal(int number) {
    if (pid_ > 0) ::kill(pid_, number);
  }
  // Exit status; -1 if it was killed.
  int wait() {
    int status = 0;
    if (pid_ <= 0 || ::waitpid(pid_, &status, 0) != pid_) return -1;
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  void kill() {
    signal(SIGKILL);
    (void)wait();
  }

 private:
  pid_t pid_ = 0;
};

// Gives up root for good, as a login does: what the process is afterwards may be read by its user.
inline bool become_nobody() {
  constexpr uid_t kNobody = 65534;
  return ::setresgid(kNobody, kNobody, kNobody) == 0 &&
         ::setresuid(kNobody, kNobody, kNobody) == 0 && ::prctl(PR_SET_DUMPABLE, 1) == 0;
}

// Returns true once the condition holds, false after ten seconds.
template <class Holds>
bool await(Holds holds) {
  auto end = Clock::now() + std::chrono::seconds(10);
  while (!holds()) {
    if (Clock::now() > end) return false;
    ::usleep(500);
  }
  return true;
}

// Two clients in a separate process that WRITE to each other all the time, each message with other
// bytes and another length, and check all of them. Reports the longest time between two
// completions at its end.
class Bystander {
 public:
  Bystander(const ServerRig& rig, const char* beside)
      : beside_(beside), child_([&] { return run(rig); }) {
    REQUIRE(await([&] { return seen_->messages > 0 || seen_->trouble != 0; }));
  }
  ~Bystander() { finish(); }
  // Expects that `more` messages arrive whole from now on.
  void expect(uint64_t more = 100) {
    uint64_t until = seen_->messages + more;
    CHECK(await([&] { return seen_->messages >= until || seen_->trouble != 0; }));
    CHECK(seen_->trouble == 0);
  }
  void finish() {
    if (std::exchange(finished_, true)) return;
    expect();
    seen_->stop = true;
    CHECK(child_.wait() == 0);
    CHECK(seen_->trouble == 0);
    std::printf("REPORT hostile %-44s %7lu messages beside it, longest gap %8.3f ms\n", beside_,
                seen_->messages.load(), static_cast<double>(seen_->longest_gap_ns) / 1e6);
    std::fflush(stdout);
  }

 private:
  enum Trouble { kNone, kStalled, kStatus, kContents };
  struct Seen {
    std::atomic<uint64_t> messages{0};
    std::atomic<int64_t> longest_gap_ns{0};
    std::atomic<int> trouble{kNone};
    std::atomic<bool> stop{false};
  };
  static constexpr size_t kBytes = 64 << 10;

  int run(const ServerRig& rig) {
    Pair pair(rig, kBytes);
    std::vector<uint8_t> expected(kBytes);
    auto last = Clock::now();
    for (uint32_t serial = 1; !seen_->stop; ++serial) {
      uint32_t length = 1 + serial * 7919 % kBytes;
      for (uint32_t i = 0; i < length; ++i) {
        pair.near_memory[i] = expected[i] = static_cast<uint8_t>(serial * 31 + i * 7 + i / 256);
      }
      pair.near.post(pair.near_qp, pair.write(length));
      rocefs_cqe cqe;
      bool came = await([&] { return pair.near_cq.wait(cqe, 1000); });
      auto now = Clock::now();
      int64_t gap = std::chrono::nanoseconds(now - std::exchange(last, now)).count();
      if (serial > 1 && gap > seen_->longest_gap_ns) seen_->longest_gap_ns = gap;
      if (!came) seen_->trouble = kStalled;
      if (came && cqe.status != 0) seen_->trouble = kStatus;
      if (came && pair.far_memory != expected) seen_->trouble = kContents;
      if (seen_->trouble != kNone) return 2;
      ++seen_->messages;
    }
    return 0;
  }

  const char* const beside_;
  Shared<Seen> seen_;
  Child child_;
  bool finished_ = false;
};

enum IbvStatus : uint32_t {
  kSuccess = 0,
  kLengthError = 1,
  kQpOperationError = 2,
  kProtectionError = 4,
  kFlushed = 5,
  kBindError = 6,
  kRemoteInvalid = 9,
  kRemoteAccess = 10,
  kRemoteOperation = 11,
  kRetryExceeded = 12,
};
enum IbvState : uint32_t { kReset, kInit, kRtr, kRts, kSqd, kSqe, kError };

inline rocefs_cqe completion_of(TestClient::Cq& cq) {
  rocefs_cqe cqe{};
  REQUIRE(cq.wait(cqe));
  return cqe;
}

inline rocefs_qp_attr query(TestClient& client, const TestClient::Queue& qp) {
  rocefs_request request{};
  request.op = ROCEFS_OP_QUERY_QP;
  request.u.handle = qp.made.handle;
  TestClient::Answer answer = client.ask(request);
  REQUIRE(answer.said.error == 0);
  return answer.said.u.qp;
}
inline uint32_t state_of(TestClient& client, const TestClient::Queue& qp) {
  return query(client, qp).state;
}

inline int to_state(TestClient& client, const TestClient::Queue& qp, uint32_t state) {
  rocefs_qp_attr attr{};
  attr.handle = qp.made.handle;
  attr.mask = 1;
  attr.state = state;
  return client.modify(attr);
}

inline const std::array<uint8_t, 4> kNearIp{10, 77, 0, 1}, kFarIp{10, 77, 0, 2};

// Resets the pair from any state.
inline void connect_again(Pair& pair) {
  REQUIRE(to_state(pair.near, pair.near_qp, kReset) == 0);
  REQUIRE(to_state(pair.far, pair.far_qp, kReset) == 0);
  pair.near.connect(pair.near_qp, kFarIp, pair.far_qp.made.qpn);
  pair.far.connect(pair.far_qp, kNearIp, pair.near_qp.made.qpn);
}

// Whether the pair moves data.
inline void check_works(Pair& pair) {
  pair.near_memory[100] = static_cast<uint8_t>(pair.far_memory[100] + 1);
  pair.near.post(pair.near_qp, pair.write(4096));
  CHECK(completion_of(pair.near_cq).status == kSuccess);
  CHECK(pair.far_memory[100] == pair.near_memory[100]);
}

inline bool qp_is_gone(ServerRig& rig, const char* device, uint32_t qpn) {
  return rig.wait_on_core([&] { return rig.fabric->device(device)->find_qp(qpn) == nullptr; });
}
// Whether no work is in progress, nor held by memory that does not answer.
inline bool all_is_quiet(ServerRig& rig) {
  return rig.wait_on_core([&] { return !rig.engine->outstanding().any(); });
}

// SIZE_MAX if no descriptor is free to count them.
inline size_t open_descriptors() {
  size_t count = 0;
  DIR* directory = ::opendir("/proc/self/fd");
  if (!directory) return SIZE_MAX;
  while (::readdir(directory)) ++count;
  ::closedir(directory);
  return count;
}

// Whether there are no more than `before`, except a few of the latest clients.
inline bool descriptors_are_back(const ServerRig& rig, size_t before) {
  return await([&] {
    TestClient passes(rig);  // a new client makes the engine look for gone ones
    return open_descriptors() <= before + 12;
  });
}

// Pages of this process that no other object uses.
class Pages {
 public:
  explicit Pages(size_t size, int sharing = MAP_PRIVATE) : size_(size) {
    at_ = static_cast<uint8_t*>(
        ::mmap(nullptr, size, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS, -1, 0));
    REQUIRE(at_ != MAP_FAILED);
    std::memset(at_, 0x5a, size);
  }
  Pages(const Pages&) = delete;
  // Leaves no hole for another thread's pages, since a copy under way still writes there: maps an
  // empty file at the addresses.
  void unmap() {
    Fd empty(::memfd_create("empty", MFD_CLOEXEC));
    ::mmap(at_, size_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, empty.get(), 0);
  }
  void protect(int protection) { ::mprotect(at_, size_, protection); }
  ~Pages() { unmap(); }
  uint8_t* data() const { return at_; }
  size_t size() const { return size_; }

 private:
  uint8_t* at_;
  const size_t size_;
};

}  // namespace rocefs::test
