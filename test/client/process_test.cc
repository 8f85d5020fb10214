// The process of a client, and what is asked of its copy thread.
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <vector>

#include "test/client/silent_memory.h"
#include "test/skip.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

// Asks a process for one thing and waits for the answer, as the core would.
class Asker final : public MemoryListener {
 public:
  Asker(Child& child, Engine& engine)
      : process_(Process::create({child.pid(), 65534, 65534},
                                 Fd(static_cast<int>(::syscall(SYS_pidfd_open, child.pid(), 0))),
                                 engine)) {
    REQUIRE(process_);
  }
  ~Asker() { process_->end(); }
  bool write(uint64_t address, uint64_t value) {
    value_ = value;
    answer_ = kNone;
    process_->write(address, {reinterpret_cast<const uint8_t*>(&value_), sizeof value_}, *this, 0);
    process_->flush();
    REQUIRE(await([&] {
      process_->take_done();
      return answer_ != kNone;
    }));
    return answer_ == kDone;
  }
  void memory_done(uint64_t, bool ok) override { answer_ = ok ? kDone : kFailed; }

 private:
  enum Told { kNone, kDone, kFailed };
  const std::shared_ptr<Process> process_;
  uint64_t value_ = 0;
  Told answer_ = kNone;
};

// With the rights of this test.
uint64_t read_word(pid_t pid, uint64_t address) {
  uint64_t word = 0;
  iovec local{&word, sizeof word}, remote{reinterpret_cast<void*>(address), sizeof word};
  REQUIRE(::process_vm_readv(pid, &local, 1, &remote, 1, 0) == sizeof word);
  return word;
}

uint64_t stack_of(pid_t pid) {
  std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("[stack]") == std::string::npos) continue;
    return std::stoull(line.substr(line.find('-') + 1), nullptr, 16) - 4096;
  }
  return 0;
}

// A program of root's that does nothing for long, in a directory of its own.
class Program {
 public:
  explicit Program(mode_t mode) {
    char name[] = "/tmp/hostile_exec_XXXXXX";
    REQUIRE(::mkdtemp(name));
    directory_ = name;
    REQUIRE(::chmod(name, 0755) == 0);
    std::filesystem::copy_file("/bin/sleep", path());
    REQUIRE(::chmod(path().c_str(), mode) == 0);
  }
  ~Program() { std::filesystem::remove_all(directory_); }
  std::string path() const { return directory_ + "/sleep"; }

 private:
  std::string directory_;
};

}  // namespace

TEST_CASE("process: what waits for a copy thread that hangs to be sent is bounded") {
  PollLoop loop;
  auto engine = Engine::create({}, loop);
  REQUIRE(engine);
  auto process =
      Process::create_threadless({::getpid(), ::getuid(), ::getgid()}, Fd(::dup(0)), **engine);
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
  Fd ours(ends[0]);
  uint32_t socket = process->adopt(Fd(ends[1]));
  auto count = [&] {
    size_t came = 0;
    for (uint64_t event; ::recv(ours.get(), &event, sizeof event, MSG_DONTWAIT) > 0;) ++came;
    return came;
  };
  uint64_t event = 1;
  for (int round = 0; round < 2; ++round) {  // and there is room again afterwards
    for (int i = 0; i < 20000; ++i) {
      process->send(socket, {reinterpret_cast<const uint8_t*>(&event), sizeof event});
      process->flush();
    }
    size_t all = 0;
    for (size_t came = 1; came > 0; all += came) {
      process->work_now();
      came = count();
    }
    CHECK(all == 4096);
  }
}

TEST_CASE("process: what is moved is told of, though memory that is asked for behind it blocks") {
  Pages pages(Process::kMuch), silent(4096);
  UnservedFaults faults;
  if (!faults.open(silent)) skip("userfaultfd(2) is refused");
  faults.drop(silent);
  PollLoop loop;
  auto engine = Engine::create({}, loop);
  REQUIRE(engine);
  struct Told final : MemoryListener {
    void memory_done(uint64_t ticket, bool) override { told.push_back(ticket); }
    std::vector<uint64_t> told;
  } told;
  auto process =
      Process::create({::getpid(), ::getuid(), ::getgid()},
                      Fd(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0))), **engine);
  REQUIRE(process);
  std::vector<uint8_t> bytes(pages.size(), 1), into(silent.size());
  auto at = [](const Pages& where) { return reinterpret_cast<uint64_t>(where.data()); };
  process->write(at(pages), bytes, told, 1);
  process->read(at(silent), into, told, 2);
  process->flush();
  auto comes = [&](std::vector<uint64_t> all) {
    return await([&] {
      process->take_done();
      return told.told == all;
    });
  };
  CHECK(comes({1}));
  CHECK(pages.data()[pages.size() - 1] == 1);
  faults.close();
  CHECK(comes({1, 2}));
  process->end();
}

// Pages that follow each other are moved by one call, which ends at the first that fails.
TEST_CASE("process: of pages of which one may not be read, each of the others is moved") {
  PollLoop loop;
  auto engine = Engine::create({}, loop);
  REQUIRE(engine);
  constexpr size_t kPages = 5, kPage = 4096, kForbidden = 2;
  auto* pages = static_cast<uint8_t*>(
      ::mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  REQUIRE(pages != MAP_FAILED);
  for (size_t i = 0; i < kPages; ++i) pages[i * kPage] = static_cast<uint8_t>(i + 1);
  REQUIRE(::mprotect(pages + kForbidden * kPage, kPage, PROT_NONE) == 0);
  auto process = Process::create_threadless(
      {::getpid(), ::getuid(), ::getgid()},
      Fd(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0))), **engine);
  struct Told final : MemoryListener {
    std::map<uint64_t, bool> parts;
    void memory_done(uint64_t ticket, bool ok) override {
      REQUIRE(parts.emplace(ticket, ok).second);
    }
  } reads, writes;
  std::vector<uint8_t> copy(kPages * kPage);
  auto address = reinterpret_cast<uint64_t>(pages);
  for (size_t i = 0; i < kPages; ++i) {
    process->read(address + i * kPage, {copy.data() + i * kPage, kPage}, reads, 100 + i);
  }
  std::array<uint8_t, kPages> marks;
  marks.fill(0xaa);
  for (size_t i = 0; i < kPages; ++i) {
    process->write(address + i * kPage + 1, {marks.data() + i, 1}, writes, i);
  }
  process->flush();
  process->work_now();
  CHECK(process->take_done());
  REQUIRE(reads.parts.size() == kPages);
  REQUIRE(writes.parts.size() == kPages);
  for (size_t i = 0; i < kPages; ++i) {
    INFO("page " << i);
    CHECK(reads.parts.at(100 + i) == (i != kForbidden));
    CHECK(writes.parts.at(i) == (i != kForbidden));
    CHECK(copy[i * kPage] == (i != kForbidden ? i + 1 : 0));
    if (i != kForbidden) CHECK(pages[i * kPage + 1] == 0xaa);
  }
  ::munmap(pages, kPages * kPage);
}

TEST_CASE("process: a program that it becomes with other rights is not written to") {
  if (::geteuid() != 0) skip("it needs root");
  PollLoop loop;
  auto engine = Engine::create({}, loop);
  REQUIRE(engine);
  for (bool gains_rights : {true, false}) {
    INFO((gains_rights ? "set-user-ID root" : "the same user's"));
    Program program(gains_rights ? 04755 : 0755);
    struct Told {
      std::atomic<uint64_t> word{0};
      std::atomic<bool> ready{false}, go{false};
    };
    Shared<Told> told;
    Child child([&] {
      ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
      if (!become_nobody()) return 2;
      told->ready = true;
      while (!told->go) ::usleep(1000);
      ::execl(program.path().c_str(), "sleep", "1000", nullptr);
      return 3;
    });
    REQUIRE(await([&] { return told->ready.load(); }));
    Asker asker(child, **engine);
    // The same address in both.
    CHECK(asker.write(reinterpret_cast<uint64_t>(&told->word), 42));
    CHECK(told->word == 42);
    told->go = true;
    std::string link = "/proc/" + std::to_string(child.pid()) + "/exe";
    REQUIRE(await([&] {
      std::error_code none;
      return std::filesystem::read_symlink(link, none) == program.path();
    }));
    struct stat status {};
    REQUIRE(::stat(("/proc/" + std::to_string(child.pid())).c_str(), &status) == 0);
    // Before that it writes to its stack itself.
    REQUIRE(await([&] {
      long call = -1;
      std::ifstream("/proc/" + std::to_string(child.pid()) + "/syscall") >> call;
      return call == SYS_clock_nanosleep || call == SYS_nanosleep;
    }));
    uint64_t at = 0;
    REQUIRE(await([&] { return (at = stack_of(child.pid())) != 0; }));
    uint64_t before = read_word(child.pid(), at);
    bool written = asker.write(at, before + 1);
    if (gains_rights) {
      CHECK_FALSE(written);
      CHECK(read_word(child.pid(), at) == before);
    } else if (written) {  // not where ptrace(2) is restricted to descendants
      CHECK(read_word(child.pid(), at) == before + 1);
    }
  }
}
