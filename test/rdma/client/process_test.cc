// The process of a client, and the jobs of its copy thread.
#include <linux/sched.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <vector>

#include "test/here.h"
#include "test/rdma/client/hostile.h"
#include "test/silent_file.h"
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
  Fd memory(::open(("/proc/" + std::to_string(pid) + "/mem").c_str(), O_RDONLY | O_CLOEXEC));
  REQUIRE(::pread(memory.get(), &word, sizeof word, static_cast<off_t>(address)) == sizeof word);
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

// A program of root that sleeps for long, in a private directory.
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

TEST_CASE("process: messages queued behind a blocked copy thread are limited") {
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

TEST_CASE("process: a finished move is reported although a later one blocks") {
  Pages pages(Process::kBulkBytes), silent(4096);
  SilentFile file;
  if (!file.open()) skip("a file that never answers cannot be mounted here");
  Shared<std::atomic<bool>> ready;
  Child child([&] {
    ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    *ready = file.cover(silent.data(), silent.size());
    for (;;) ::pause();
    return 0;
  });
  REQUIRE(await([&] { return ready->load(); }));
  PollLoop loop;
  auto engine = Engine::create({}, loop);
  REQUIRE(engine);
  struct Told final : MemoryListener {
    void memory_done(uint64_t ticket, bool) override { told.push_back(ticket); }
    std::vector<uint64_t> told;
  } told;
  auto process =
      Process::create({child.pid(), ::getuid(), ::getgid()},
                      Fd(static_cast<int>(::syscall(SYS_pidfd_open, child.pid(), 0))), **engine);
  REQUIRE(process);
  // Another process, at the same address: a thread that waits for a page keeps its memory locked.
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
  CHECK(await([&] { return file.was_read(); }));
  CHECK(read_word(child.pid(), at(pages)) == 0x0101010101010101);
  file.end();
  CHECK(comes({1, 2}));
  process->end();
}

// Pages that follow each other are moved at once, which ends at the first that fails.
TEST_CASE("process: one unmapped page fails its own move, and the other pages are moved") {
  PollLoop loop;
  auto engine = Engine::create({}, loop);
  REQUIRE(engine);
  constexpr size_t kPages = 5, kPage = 4096, kGone = 2;
  auto* pages = static_cast<uint8_t*>(
      ::mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  REQUIRE(pages != MAP_FAILED);
  for (size_t i = 0; i < kPages; ++i) pages[i * kPage] = static_cast<uint8_t>(i + 1);
  REQUIRE(::munmap(pages + kGone * kPage, kPage) == 0);
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
    CHECK(reads.parts.at(100 + i) == (i != kGone));
    CHECK(writes.parts.at(i) == (i != kGone));
    CHECK(copy[i * kPage] == (i != kGone ? i + 1 : 0));
    if (i != kGone) CHECK(pages[i * kPage + 1] == 0xaa);
  }
  ::munmap(pages, kPages * kPage);
}

TEST_CASE("process: after an exec the new program's memory is not written") {
  if (::geteuid() != 0) skip("it needs root");
  if (!kernel_is_ours()) skip("the kernel's numbers of system calls are not this program's");
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
    // Before that it writes to its stack itself.
    REQUIRE(await([&] {
      long call = -1;
      std::ifstream("/proc/" + std::to_string(child.pid()) + "/syscall") >> call;
      return call == SYS_clock_nanosleep || call == SYS_nanosleep;
    }));
    uint64_t at = 0;
    REQUIRE(await([&] { return (at = stack_of(child.pid())) != 0; }));
    uint64_t before = read_word(child.pid(), at);
    CHECK_FALSE(asker.write(at, before + 1));
    CHECK(read_word(child.pid(), at) == before);
    bool another = Asker(child, **engine).write(at, before + 1);
    if (gains_rights) CHECK_FALSE(another);
  }
}

// Each of the daemon's threads is of the daemon's user, by whom the kernel decides who may signal,
// stop or limit it.
TEST_CASE("process: a client cannot affect the thread that moves its memory") {
  if (::geteuid() != 0) skip("it needs root");
  PollLoop loop;
  auto engine = Engine::create({}, loop);
  REQUIRE(engine);
  struct Told {
    std::atomic<uint64_t> word{0};
    std::atomic<bool> ready{false};
    std::atomic<pid_t> threads[64] = {};
    std::atomic<int> count{0};
    std::atomic<bool> go{false};
  };
  Shared<Told> told;
  Child child([&] {
    ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    if (!become_nobody()) return 2;
    told->ready = true;
    while (!told->go) ::usleep(1000);
    for (int i = 0; i < told->count; ++i) {
      pid_t thread = told->threads[i];
      rlimit limit{1, 1};
      sched_param none{};
      bool refused = ::kill(thread, 0) != 0 && errno == EPERM &&
                     ::syscall(SYS_tgkill, ::getppid(), thread, SIGSTOP) != 0 && errno == EPERM &&
                     ::prlimit(thread, RLIMIT_NOFILE, &limit, nullptr) != 0 && errno == EPERM &&
                     ::sched_setscheduler(thread, SCHED_IDLE, &none) != 0 && errno == EPERM;
      if (!refused) return 10 + i;
    }
    return 0;
  });
  REQUIRE(await([&] { return told->ready.load(); }));
  Asker asker(child, **engine);
  CHECK(asker.write(reinterpret_cast<uint64_t>(&told->word), 42));
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    REQUIRE(told->count < 64);
    told->threads[told->count++] = std::stoi(thread.path().filename());
  }
  told->go = true;
  CHECK(child.wait() == 0);
}

// A waiting process with this id; -1 and errno if it cannot have it. The kernel assigns the id and
// creates the process in one step (clone3(2)), so that no other process can take the id.
pid_t fork_as(pid_t id) {
  clone_args how{};
  how.exit_signal = SIGCHLD;
  how.set_tid = reinterpret_cast<uint64_t>(&id);
  how.set_tid_size = 1;
  auto made = static_cast<pid_t>(::syscall(SYS_clone3, &how, sizeof how));
  if (made != 0) return made;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (;;) ::pause();
}

// A process id can be reused as soon as its process has been waited for.
TEST_CASE("process: a process that reuses a dead client's id is not written to") {
  if (fork_as(::getpid()) < 0 && errno != EEXIST)
    skip("the kernel must let a process id be chosen");
  SilentFile file;
  if (!file.open()) skip("a file that never answers cannot be mounted here");
  PollLoop loop;
  auto engine = Engine::create({}, loop);
  REQUIRE(engine);
  // At the same address in all that are forked.
  Pages pages(4096), silent(4096);
  auto waits = [] {
    for (;;) ::pause();
    return 0;
  };
  Shared<std::atomic<bool>> ready;
  std::optional<Child> client;
  client.emplace([&] {
    ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    *ready = file.cover(silent.data(), silent.size());
    return waits();
  });
  REQUIRE(await([&] { return ready->load(); }));
  const pid_t number = client->pid();
  struct Told final : MemoryListener {
    void memory_done(uint64_t ticket, bool ok) override { told[ticket] = ok; }
    std::map<uint64_t, bool> told;
  } told;
  auto process = Process::create(
      {number, 0, 0}, Fd(static_cast<int>(::syscall(SYS_pidfd_open, number, 0))), **engine);
  REQUIRE(process);
  std::vector<uint8_t> bytes(4096, 0xee);
  auto at = [](const Pages& where) { return reinterpret_cast<uint64_t>(where.data()); };
  process->write(at(pages), bytes, told, 1);
  process->flush();
  REQUIRE(await([&] { return process->take_done() && told.told.count(1) > 0; }));
  CHECK(told.told[1]);
  // One batch: the second move is queued when the first one has failed.
  process->write(at(silent), {bytes.data(), 8}, told, 2);
  process->write(at(pages), bytes, told, 3);
  process->flush();
  REQUIRE(await([&] { return file.was_read(); }));
  client->kill();
  const pid_t heir = fork_as(number);
  REQUIRE(heir == number);
  file.end();
  REQUIRE(await([&] {
    process->take_done();
    return told.told.size() == 3;
  }));
  CHECK_FALSE(told.told[2]);
  CHECK_FALSE(told.told[3]);
  CHECK(read_word(number, at(pages)) == 0x5a5a5a5a5a5a5a5a);
  ::kill(heir, SIGKILL);
  ::waitpid(heir, nullptr, 0);
  process->end();
}

TEST_CASE("process: memory is accepted for a region if its process may access it") {
  PollLoop loop;
  auto engine = Engine::create({}, loop);
  REQUIRE(engine);
  auto process = Process::create_threadless(
      {::getpid(), ::getuid(), ::getgid()},
      Fd(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0))), **engine);
  constexpr size_t kPage = 4096;
  Pages pages(4 * kPage);
  auto at = reinterpret_cast<uint64_t>(pages.data());
  CHECK(process->populated(at, 4 * kPage, true));
  REQUIRE(::mprotect(pages.data() + kPage, kPage, PROT_READ) == 0);
  CHECK(process->populated(at, kPage, true));
  CHECK(process->populated(at, 4 * kPage, false));
  CHECK_FALSE(process->populated(at + kPage - 1, 2, true));
  CHECK_FALSE(process->populated(at + kPage, 1, true));
  CHECK(process->populated(at + 2 * kPage, 2 * kPage, true));
  REQUIRE(::mprotect(pages.data() + kPage, kPage, PROT_NONE) == 0);
  CHECK_FALSE(process->populated(at, 4 * kPage, false));
  REQUIRE(::mprotect(pages.data() + kPage, kPage, PROT_READ | PROT_WRITE) == 0);
  CHECK(process->populated(at, 4 * kPage, true));
  REQUIRE(::munmap(pages.data() + kPage, kPage) == 0);
  CHECK_FALSE(process->populated(at, 4 * kPage, false));
  CHECK(process->populated(at + kPage, 0, true));
}

// Parts of any length are gathered, and begin and end anywhere.
TEST_CASE("process: adjacent parts are moved completely, in both directions") {
  PollLoop loop;
  auto engine = Engine::create({}, loop);
  REQUIRE(engine);
  auto process = Process::create_threadless(
      {::getpid(), ::getuid(), ::getgid()},
      Fd(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0))), **engine);
  struct Told final : MemoryListener {
    void memory_done(uint64_t, bool ok) override { ++(ok ? good : bad); }
    int good = 0, bad = 0;
  } told;
  std::mt19937 random(5);
  for (int round = 0; round < 20; ++round) {
    INFO("round " << round);
    size_t longest = round % 2 ? 5000 : 40000;
    std::vector<uint8_t> there(1 << 20), here(there.size()), back(there.size());
    for (uint8_t& byte : there) byte = static_cast<uint8_t>(random());
    const std::vector<uint8_t> original = there;
    const size_t begin = random() % 5000, end = there.size() - random() % 5000;
    uint64_t ticket = 0;
    for (size_t at = begin; at < end;) {
      size_t some = std::min(end - at, 1 + random() % longest);
      process->read(reinterpret_cast<uint64_t>(there.data()) + at, {here.data() + at, some}, told,
                    ticket++);
      at += some;
    }
    process->flush();
    process->work_now();
    process->take_done();
    for (size_t at = begin; at < end;) {
      size_t some = std::min(end - at, 1 + random() % longest);
      process->write(reinterpret_cast<uint64_t>(back.data()) + at, {here.data() + at, some}, told,
                     ticket++);
      at += some;
    }
    process->flush();
    process->work_now();
    process->take_done();
    CHECK(there == original);
    auto from = static_cast<long>(begin), to = static_cast<long>(end);
    CHECK(std::equal(back.begin() + from, back.begin() + to, original.begin() + from));
    CHECK(std::count(back.begin(), back.begin() + from, 0) == from);
    CHECK(std::count(back.begin() + to, back.end(), 0) == back.end() - (back.begin() + to));
    CHECK((told.bad == 0 && told.good == static_cast<int>(ticket)));
    told.good = 0;
  }
}

// The last jobs of a client may have no results: closed sockets, lost messages.
TEST_CASE("process: an ended client is forgotten when its last job ends, by a core that sleeps") {
  PollLoop loop;
  auto engine = Engine::create({}, loop);
  REQUIRE(engine);
  Fabric fabric(default_topology(), 1, (*engine)->scheduler(), (*engine)->outstanding());
  auto clients = Clients::create(fabric, **engine);
  REQUIRE(clients);
  Mapping page(Fd(::dup((*clients)->page("mb_0"))), sizeof(rocefs_engine_page), PROT_READ);
  std::atomic_ref sleeps(page.at<rocefs_engine_page>()->asleep);
  Clients::Arrival arrival;
  arrival.process =
      Process::create({::getpid(), ::getuid(), ::getgid()},
                      Fd(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0))), **engine);
  REQUIRE(arrival.process);
  auto own =
      SharedMemory::create("test", sizeof(rocefs_context_page), SharedMemory::Others::kWrite);
  REQUIRE(own);
  arrival.page = std::make_shared<SharedMemory>(std::move(*own));
  arrival.doorbell = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  std::string_view("mb_0").copy(arrival.hello.device, sizeof arrival.hello.device - 1);
  std::shared_ptr<Process> process = arrival.process;
  std::atomic<bool> answered{false}, begun{false}, may_end{false};
  (*engine)->start();
  Task comes = [&] {
    (*clients)->add(1, std::move(arrival), [&](const rocefs_answer&) { answered = true; });
  };
  REQUIRE((*engine)->post(comes));
  REQUIRE(await([&] { return answered.load(); }));
  const std::weak_ptr<Process> thread = process->thread();
  Task leaves = [&] {
    process->run([&]() -> Task {
      begun = true;
      await([&] { return may_end.load(); });
      return {};
    });
    process->flush();
    process->end();
    (*clients)->remove(1);
    process.reset();
  };
  REQUIRE((*engine)->post(leaves));
  CHECK(await([&] { return begun && sleeps.load() == 1; }));
  CHECK_FALSE(thread.expired());
  may_end = true;
  CHECK(await([&] { return thread.expired(); }));
  (*engine)->stop();
}
