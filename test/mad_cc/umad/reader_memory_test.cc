// Writes into the buffer of a thread that waits in read(2), though nothing was read.
#include "mad_cc/umad/reader_memory.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <thread>

#include "core/base/clock.h"
#include "core/base/fd.h"
#include "mad_cc/umad/umad_reads.h"
#include "test/here.h"
#include "test/silent_file.h"
#include "test/skip.h"

using namespace rocefs;
using Outcome = ReaderMemory::Outcome;

namespace {

// Thread that reads from an empty pipe until it is released.
class Blocked {
 public:
  Blocked(void* buffer, size_t size) {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    read_ = Fd(ends[0]);
    write_ = Fd(ends[1]);
    thread_ = std::thread([this, buffer, size] {
      id_ = static_cast<pid_t>(::syscall(SYS_gettid));
      (void)!::read(read_.get(), buffer, size);
    });
    while (id_ == 0) std::this_thread::yield();
  }
  ~Blocked() {
    write_.reset();
    thread_.join();
  }
  Caller caller() const { return {::getuid(), ::getgid(), id_}; }

 private:
  Fd read_, write_;
  std::atomic<pid_t> id_{0};
  std::thread thread_;
};

void* anonymous(size_t pages) {
  return ::mmap(nullptr, pages * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

// Process of that user which reads 1000 octets from an empty pipe, into memory that may block.
class BlockedProcess {
 public:
  explicit BlockedProcess(uid_t user = ::getuid(), const test::SilentFile* file = nullptr)
      : user_(user) {
    int ready[2], empty[2];
    REQUIRE((::pipe(ready) == 0 && ::pipe(empty) == 0));
    pid_ = ::fork();
    if (pid_ == 0) {
      void* page = anonymous(1);
      bool ready_to = !file || file->cover(page, 4096);
      bool own = user == ::getuid() || ::setresuid(user, user, user) == 0;
      ::prctl(PR_SET_DUMPABLE, 1);
      (void)!::write(ready[1], "x", own && ready_to);
      (void)!::read(empty[0], page, 1000);
      ::_exit(0);
    }
    char byte;
    REQUIRE(::read(ready[0], &byte, 1) == 1);
    for (int fd : {ready[0], ready[1], empty[0], empty[1]}) ::close(fd);
  }
  ~BlockedProcess() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Caller caller() const { return {user_, ::getgid(), pid_}; }

 private:
  uid_t user_;
  pid_t pid_;
};

// Process whose threads, except the first, each read 1000 octets into memory that blocks.
class BlockedThreads {
 public:
  static constexpr size_t kThreads = 6;

  explicit BlockedThreads(const test::SilentFile& file) {
    void* shared =
        ::mmap(nullptr, sizeof *ids_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(shared != MAP_FAILED);
    ids_ = new (shared) Ids();
    int empty[2];
    REQUIRE(::pipe(empty) == 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      auto* pages = static_cast<char*>(anonymous(kThreads));
      if (!file.cover(pages + 4096, (kThreads - 1) * 4096)) ::_exit(1);
      auto blocked = [&](size_t i) {
        (*ids_)[i] = static_cast<pid_t>(::syscall(SYS_gettid));
        (void)!::read(empty[0], pages + i * 4096, 1000);
      };
      for (size_t i = 1; i < kThreads; ++i) std::thread(blocked, i).detach();
      blocked(0);
      ::_exit(0);
    }
    for (int fd : empty) ::close(fd);
    for (auto& id : *ids_) {
      while (id == 0) std::this_thread::yield();
    }
  }
  ~BlockedThreads() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    ::munmap(ids_, sizeof *ids_);
  }
  Caller caller(size_t thread) const { return {::getuid(), ::getgid(), (*ids_)[thread]}; }

 private:
  using Ids = std::array<std::atomic<pid_t>, kThreads>;
  Ids* ids_;
  pid_t pid_;
};

#ifdef __x86_64__
long call_of_32_bits(long number, long first, long second, long third) {
  long result = number;
  asm volatile("int $0x80"
               : "+a"(result)
               : "b"(first), "c"(second), "d"(third)
               : "memory", "r8", "r9", "r10", "r11");
  return result;
}

bool has_calls_of_32_bits() {
  pid_t pid = ::fork();
  if (pid == 0) {
    ::signal(SIGSEGV, SIG_DFL);  // nothing of it is this test's report
    ::_exit(call_of_32_bits(20, 0, 0, 0) == ::getpid() ? 0 : 1);
  }
  int status = 1;
  ::waitpid(pid, &status, 0);
  return status == 0;
}
#endif

struct Shows {
  PollLoop loop;
  std::shared_ptr<ReaderMemory> memory = ReaderMemory::create(loop);

  Outcome show(const ReaderMemory::Read& read, const std::string& bytes) {
    Outcome outcome{};
    memory->show(read, bytes, [&](Outcome told) {
      outcome = told;
      loop.stop();
    });
    loop.run();
    return outcome;
  }
  void turn() {
    loop.post([this] { loop.stop(); });
    loop.run();
  }
};

}  // namespace

#define NEEDS_OUR_NUMBERS() \
  if (!test::kernel_is_ours()) test::skip("the kernel's number of read(2) is not this program's")

TEST_CASE("umad: data is written into the buffer of a waiting reader") {
  NEEDS_OUR_NUMBERS();
  Shows shows;
  std::string buffer(1000, '-');
  Blocked reader(buffer.data(), 1000);
  CHECK(shows.show({reader.caller(), 1000, 1001}, std::string(320, 'x')) == Outcome::kShown);
  CHECK(buffer == std::string(320, 'x') + std::string(680, '-'));
  CHECK(shows.memory->threads() == 0);
}

TEST_CASE("umad: nothing is written if the thread is not in that read, or does not exist") {
  Shows shows;
  std::string buffer(1000, '-');
  Blocked reader(buffer.data(), 1000);
  CHECK(shows.show({reader.caller(), 999, 1001}, "x") == Outcome::kUnknown);
  CHECK(shows.show({reader.caller(), 1001, 1002}, "x") == Outcome::kUnknown);
  CHECK(shows.show({{0, 0, 0}, 1000, 1001}, "x") == Outcome::kUnknown);
  CHECK(shows.show({{0, 0, INT32_MAX}, 1000, 1001}, "x") == Outcome::kUnknown);
  pid_t waits = ::fork();
  if (waits == 0) {
    for (;;) ::pause();
  }
  CHECK(shows.show({{::getuid(), ::getgid(), waits}, 1000, 1001}, "x") == Outcome::kUnknown);
  ::kill(waits, SIGKILL);
  ::waitpid(waits, nullptr, 0);
  CHECK(buffer == std::string(1000, '-'));
}

TEST_CASE("umad: a read(2) in parts whose buffer has room for all is recognised") {
  NEEDS_OUR_NUMBERS();
  Shows shows;
  std::string buffer(300'000, '-');
  Blocked reader(buffer.data(), buffer.size());
  CHECK(shows.show({reader.caller(), 131072, 300'000}, "x") == Outcome::kFits);
  CHECK(shows.show({reader.caller(), 131072, 300'001}, "x") == Outcome::kShown);
  CHECK(shows.show({reader.caller(), 100'000, 300'000}, "x") == Outcome::kUnknown);
}

TEST_CASE("umad: a read-only buffer is reported as a fault") {
  NEEDS_OUR_NUMBERS();
  Shows shows;
  void* page = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  {
    Blocked reader(page, 1000);
    CHECK(shows.show({reader.caller(), 1000, 1001}, "x") == Outcome::kFault);
  }
  ::munmap(page, 4096);
}

TEST_CASE("umad: the memory of a process that may not be traced is not written") {
  if (::geteuid() != 0) test::skip("this needs root");
  Shows shows;
  int ends[2], empty[2];
  REQUIRE((::pipe(ends) == 0 && ::pipe(empty) == 0));
  pid_t pid = ::fork();
  if (pid == 0) {
    bool dropped = ::setresgid(65534, 65534, 65534) == 0 && ::setresuid(65534, 65534, 65534) == 0;
    ::prctl(PR_SET_DUMPABLE, 0);
    char buffer[100];
    (void)!::write(ends[1], "x", dropped);
    (void)!::read(empty[0], buffer, sizeof buffer);
    ::_exit(0);
  }
  char ready;
  REQUIRE(::read(ends[0], &ready, 1) == 1);
  CHECK(shows.show({{65534, 65534, pid}, 100, 101}, "x") == Outcome::kForbidden);
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  for (int fd : {ends[0], ends[1], empty[0], empty[1]}) ::close(fd);
}

TEST_CASE("umad: blocked memory is given up after a second, and its process does not wait again") {
  NEEDS_OUR_NUMBERS();
  BlockedProcess another;
  test::SilentFile file;
  if (!file.open()) test::skip("a file that never answers cannot be mounted here");
  BlockedThreads readers(file);
  constexpr size_t kBlocked = BlockedThreads::kThreads - 1;
  Shows shows;
  TimeNs begun = monotonic_ns();
  std::vector<Outcome> told;
  for (size_t i = 1; i <= kBlocked; ++i) {
    shows.memory->show({readers.caller(i), 1000, 1001}, "x", [&](Outcome outcome) {
      told.push_back(outcome);
      if (told.size() == kBlocked) shows.loop.stop();
    });
  }
  shows.loop.run();
  CHECK(told == std::vector<Outcome>(kBlocked, Outcome::kUnknown));
  CHECK(monotonic_ns() - begun >= ReaderMemory::kPatience);
  CHECK(shows.memory->threads() == 1);
  begun = monotonic_ns();
  CHECK(shows.show({readers.caller(0), 1000, 1001}, "x") == Outcome::kUnknown);
  CHECK(shows.show({another.caller(), 1000, 1001}, "x") == Outcome::kShown);
  CHECK(monotonic_ns() - begun < ReaderMemory::kPatience);
  // Served again once released.
  file.end();
  TimeNs end = monotonic_ns() + 20 * kSecond;
  while (shows.memory->threads() != 0 && monotonic_ns() < end) shows.turn();
  CHECK(shows.show({readers.caller(0), 1000, 1001}, "x") == Outcome::kShown);
}

TEST_CASE("umad: a user blocks four threads at most, and no other user waits for them") {
  NEEDS_OUR_NUMBERS();
  if (::geteuid() != 0) test::skip("this needs root");
  test::SilentFile file;
  if (!file.open()) test::skip("a file that never answers cannot be mounted here");
  constexpr uid_t kNobody = 65534;
  Shows shows;
  std::vector<std::unique_ptr<BlockedProcess>> readers;
  for (size_t i = 0; i < 6; ++i)
    readers.push_back(std::make_unique<BlockedProcess>(kNobody, &file));
  BlockedProcess theirs(kNobody), good;
  size_t told = 0;
  for (auto& reader : readers) {
    shows.memory->show({reader->caller(), 1000, 1001}, "x", [&](Outcome outcome) {
      CHECK(outcome == Outcome::kUnknown);
      if (++told == 6) shows.loop.stop();
    });
  }
  TimeNs begun = monotonic_ns();
  Outcome meanwhile{};
  shows.memory->show({good.caller(), 1000, 1001}, "x", [&](Outcome outcome) {
    meanwhile = outcome;
    CHECK(monotonic_ns() - begun < ReaderMemory::kPatience / 2);
  });
  shows.loop.run();
  CHECK(meanwhile == Outcome::kShown);
  CHECK(shows.memory->threads() == 4);
  // Rule of the kernel: the user id decides who may signal, stop or limit a thread.
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream status(thread.path() / "status");
    std::string line;
    while (std::getline(status, line) && line.rfind("Uid:", 0) != 0) {
    }
    CHECK(line == "Uid:\t0\t0\t0\t0");
  }
  begun = monotonic_ns();
  CHECK(shows.show({theirs.caller(), 1000, 1001}, "x") == Outcome::kUnknown);
  CHECK(shows.show({good.caller(), 1000, 1001}, "x") == Outcome::kShown);
  CHECK(monotonic_ns() - begun < ReaderMemory::kPatience / 2);
  readers.clear();
  file.end();
  TimeNs end = monotonic_ns() + 20 * kSecond;
  while (shows.memory->threads() != 0 && monotonic_ns() < end) shows.turn();
  CHECK(shows.show({theirs.caller(), 1000, 1001}, "x") == Outcome::kShown);
}

TEST_CASE("umad: a user whose reads wait leaves other users their turn") {
  NEEDS_OUR_NUMBERS();
  if (::geteuid() != 0) test::skip("this needs root");
  test::SilentFile file;
  if (!file.open()) test::skip("a file that never answers cannot be mounted here");
  constexpr uid_t kNobody = 65534;
  Shows shows;
  BlockedProcess theirs(kNobody, &file), good;
  constexpr size_t kAsked = ReaderMemory::kWaiting + 100;
  size_t told = 0;
  for (size_t i = 0; i < kAsked; ++i) {
    shows.memory->show({theirs.caller(), 1000, 1001}, "x", [&](Outcome outcome) {
      CHECK(outcome == Outcome::kUnknown);
      ++told;
    });
  }
  CHECK(kAsked - told == 448);  // half of what is not root's
  CHECK(shows.show({good.caller(), 1000, 1001}, "x") == Outcome::kShown);
  TimeNs end = monotonic_ns() + 20 * kSecond;
  while (told != kAsked && monotonic_ns() < end) shows.turn();
  CHECK(told == kAsked);
}

#ifdef __x86_64__
TEST_CASE("umad: a read(2) of a 32-bit program is recognised") {
  auto* low = static_cast<char*>(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE,
                                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0));
  REQUIRE(low != MAP_FAILED);
  if (!has_calls_of_32_bits()) test::skip("system calls of 32 bits are forbidden here");
  Shows shows;
  int empty[2];
  REQUIRE(::pipe(empty) == 0);
  std::atomic<pid_t> id{0};
  std::thread thread([&] {
    id = static_cast<pid_t>(::syscall(SYS_gettid));
    call_of_32_bits(3, empty[0], static_cast<long>(reinterpret_cast<uintptr_t>(low)), 1000);
  });
  while (id == 0) std::this_thread::yield();
  Caller caller{::getuid(), ::getgid(), id};
  CHECK(shows.show({caller, 999, 1001}, "x") == Outcome::kUnknown);
  CHECK(shows.show({caller, 1000, 1001}, "x") == Outcome::kShown);
  CHECK(low[0] == 'x');
  ::close(empty[1]);
  thread.join();
  ::close(empty[0]);
  ::munmap(low, 4096);
}
#endif

TEST_CASE("umad: a message that is read in parts arrives whole") {
  NEEDS_OUR_NUMBERS();
  Shows shows;
  constexpr size_t kPart = 128 << 10, kAll = 1 << 20;
  std::string buffer(kAll + 1000, '-');
  Blocked reader(buffer.data(), buffer.size());
  auto room = std::make_shared<UmadRoom>(std::make_shared<UmadShares>(), UmadRoom::User{});
  auto reads =
      std::make_shared<UmadReads>(room, shows.memory, [](const std::string& line) { FAIL(line); });
  reads->begin();
  UmadArrival arrival{};
  for (size_t i = 0; i < kAll; ++i) arrival.message.push_back(static_cast<uint8_t>(i * 7 >> 8));
  arrival.received = true;
  REQUIRE(reads->room()->take(kAll, true));
  reads->arrived(arrival);
  std::string got;
  size_t parts = 0;
  for (std::optional<size_t> part; !part || *part != 0; ++parts) {
    part.reset();
    reads->read(got.size(), kPart, std::make_shared<Operation>(reader.caller()),
                [&](Result<std::string> bytes) {
                  REQUIRE(bytes);
                  got += *bytes;
                  part = bytes->size();
                });
    while (!part) shows.turn();
  }
  CHECK(parts == kAll / kPart + 2);  // one has the header's octets, one nothing
  CHECK(got.size() == reads->header_size() + kAll);
  CHECK(std::equal(arrival.message.begin(), arrival.message.end(),
                   got.begin() + static_cast<long>(reads->header_size()),
                   [](uint8_t a, char b) { return a == static_cast<uint8_t>(b); }));
}

TEST_CASE("umad: pending writes are dropped when the session ends") {
  PollLoop loop;
  auto memory = ReaderMemory::create(loop);
  std::string buffer(1000, '-');
  Blocked reader(buffer.data(), 1000);
  auto dropped = std::make_shared<int>(0);
  for (int i = 0; i < 100; ++i) {
    memory->show({reader.caller(), 1000, 1001}, "x",
                 [dropped](Outcome) { FAIL("nobody is there to be told"); });
  }
  memory.reset();
  CHECK(dropped.use_count() == 1);
  loop.post([&] { loop.stop(); });
  loop.run();
}
