// Answers: each request gets exactly one, however late, from any thread, whatever ends meanwhile.
#include <sys/resource.h>

#include <new>

#include "test/fs/child.h"

using namespace rocefs;
using namespace rocefs::test;

#define NEEDS_FUSE() \
  if (!fuse_here()) skip("no /dev/fuse here")

namespace {

void add_file(Mounted& mounted, const std::string& name, std::shared_ptr<File> file) {
  mounted.control([&] { mounted.tree.add_file("flows/" + name, file); });
}

}  // namespace

TEST_CASE("fs: an answer that is dropped on another thread gives EIO") {
  NEEDS_FUSE();
  Mounted mounted;
  std::vector<std::thread> elsewhere;
  add_file(mounted, "dropped",
           write_only([&](std::string_view, const OperationPtr&, Answer<void> answer) {
             elsewhere.emplace_back([kept = std::move(answer)] {});
           }));
  for (int i = 0; i < 50; ++i) CHECK(Mounted::write(mounted.path + "/flows/dropped", "x") == EIO);
  mounted.control([&] { CHECK(mounted.refusals.size() == 50); });
  for (std::thread& thread : elsewhere) thread.join();
}

TEST_CASE("fs: an exception in a file fails only its caller") {
  NEEDS_FUSE();
  Mounted mounted;
  add_file(mounted, "throws",
           read_write([]() -> Result<std::string> { throw std::bad_alloc(); },
                      [](std::string_view, const OperationPtr&, Answer<void>) {
                        throw std::bad_alloc();
                      }));
  std::string file = mounted.path + "/flows/throws";
  int fd = ::open(file.c_str(), O_RDONLY);
  char buffer[16];
  CHECK(::read(fd, buffer, sizeof buffer) == -1);
  CHECK(errno == ENOMEM);
  ::close(fd);
  CHECK(Mounted::write(file, "x") == ENOMEM);
  CHECK(Mounted::read(mounted.at("ro")) == "fixed\n");
}

TEST_CASE("fs: a caught signal ends a waiting store with EINTR") {
  NEEDS_FUSE();
  Mounted mounted;
  pid_t waiting = start_writer(mounted, mounted.at("slow"), "go\n");
  REQUIRE(wait_for([&] { return mounted.waiting_count == 1; }));
  ::kill(waiting, SIGUSR1);
  CHECK(WEXITSTATUS(status_of(waiting)) == EINTR);
  CHECK(mounted.interrupted == 1);
  mounted.control([&] {
    mounted.waiting[0](Error{EINVAL, "too late"});
    CHECK(mounted.refusals.empty());
  });
}

TEST_CASE("fs: an ignored signal leaves a waiting store alone, and a later caught one ends it") {
  NEEDS_FUSE();
  Mounted mounted;
  for (int next : {0, SIGUSR1, SIGKILL}) {
    CAPTURE(next);
    int before = mounted.waiting_count;
    pid_t waiting = start_writer(mounted, mounted.at("slow"), "go\n");
    REQUIRE(wait_for([&] { return mounted.waiting_count == before + 1; }));
    for (int signal : {SIGCHLD, SIGURG}) ::kill(waiting, signal);
    // Signal reported: the kernel now waits only for the answer or a SIGKILL.
    REQUIRE(wait_for([&] { return state_of(waiting) == 'D'; }));
    CHECK(Mounted::read(mounted.at("ro")) == "fixed\n");
    CHECK(mounted.interrupted == 0);
    if (next) {
      ::kill(waiting, next);
      int status = status_of(waiting);
      CHECK((next == SIGKILL ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == EINTR));
      CHECK(mounted.interrupted.exchange(0) == 1);
    } else {
      mounted.control([&] { mounted.waiting.back()({}); });
      CHECK(status_of(waiting) == 0);
    }
  }
}

TEST_CASE("fs: a store that is answered inside its interrupt handler is answered once") {
  NEEDS_FUSE();
  Mounted mounted;
  std::atomic<bool> waits{false};
  Answer<void> kept;
  add_file(mounted, "yielding",
           write_only([&](std::string_view, const OperationPtr& operation, Answer<void> answer) {
             kept = std::move(answer);
             operation->on_interrupt([&] { kept(Error{ECANCELED, "gave up"}); });
             waits = true;
           }));
  pid_t waiting = start_writer(mounted, mounted.path + "/flows/yielding", "x");
  REQUIRE(wait_for([&] { return waits.load(); }));
  ::kill(waiting, SIGUSR1);
  CHECK(WEXITSTATUS(status_of(waiting)) == ECANCELED);
  CHECK(Mounted::read(mounted.at("ro")) == "fixed\n");
  mounted.control([&] { kept = nullptr; });  // it is that thread's
}

TEST_CASE("fs: a refusal of a removed file is reported under its former path") {
  NEEDS_FUSE();
  Mounted mounted;
  add_file(mounted, "f", write_only([](std::string_view, const OperationPtr&, Answer<void> answer) {
             answer({});
           }));
  int fd = ::open((mounted.path + "/flows/f").c_str(), O_WRONLY);
  mounted.control([&] { mounted.tree.remove("flows/f"); });
  CHECK(::write(fd, "x", 1) == -1);
  CHECK(errno == ENODEV);
  ::close(fd);
  mounted.control([&] {
    REQUIRE(mounted.refusals.size() == 1);
    CHECK(mounted.refusals[0].find("flows/f: ") == 0);
  });
}

TEST_CASE("fs: waiting stores get EIO when the session ends, and late answers are harmless") {
  NEEDS_FUSE();
  auto mounted = std::make_unique<Mounted>();
  pid_t interruptible = start_writer(*mounted, mounted->at("slow"), "go\n");
  REQUIRE(wait_for([&] { return mounted->waiting_count == 1; }));
  std::string other = mounted->path + "/flows/other";
  Answer<void> kept;
  std::atomic<bool> waits{false};
  add_file(*mounted, "other",
           write_only([&](std::string_view, const OperationPtr&, Answer<void> answer) {
             kept = std::move(answer);
             waits = true;
           }));
  pid_t deaf = start_writer(*mounted, other, "x");
  REQUIRE(wait_for([&] { return waits.load(); }));
  std::vector<Answer<void>> late;
  mounted->control([&] { late = std::move(mounted->waiting); });
  mounted.reset();
  CHECK(WEXITSTATUS(status_of(interruptible)) == EIO);
  CHECK(WEXITSTATUS(status_of(deaf)) == EIO);
  late[0](Error{EINVAL, "refused too late"});
  std::thread elsewhere([dropped = std::move(kept)] {});
  elsewhere.join();
}

TEST_CASE("fs: a session can end while entries are removed and looked up") {
  NEEDS_FUSE();
  for (int round = 0; round < 10; ++round) {
    Mounted mounted;
    mounted.control([&] {
      for (int i = 0; i < 200; ++i) mounted.tree.add_directory("flows/f" + std::to_string(i));
    });
    std::atomic<bool> stop{false};
    std::atomic<int> looks{0};
    auto look = [&] {
      for (int i = 0; !stop; i = (i + 1) % 200) {
        ::access((mounted.path + "/flows/f" + std::to_string(i)).c_str(), F_OK);
        ++looks;
      }
    };
    std::thread one(look), two(look);
    REQUIRE(wait_for([&] { return looks > 200; }));
    mounted.control([&] {
      for (int i = 0; i < 200; ++i) mounted.tree.remove("flows/f" + std::to_string(i));
    });
    mounted.stop();
    mounted.session.reset();
    stop = true;
    one.join();
    two.join();
  }
}

TEST_CASE("fs: a thousand files are open at once, from several threads") {
  NEEDS_FUSE();
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  rlimit wanted = limit;
  wanted.rlim_cur = std::min<rlim_t>(limit.rlim_max, 2048);
  if (wanted.rlim_cur < 1200) skip("fewer than 1200 descriptors are allowed here");
  ::setrlimit(RLIMIT_NOFILE, &wanted);
  {
    Mounted mounted;
    std::atomic<int> right{0};
    std::vector<std::vector<int>> fds(4);
    std::vector<std::thread> threads;
    for (std::vector<int>& mine : fds) {
      threads.emplace_back([&] {
        for (int i = 0; i < 250; ++i) mine.push_back(::open(mounted.at("uint").c_str(), O_RDWR));
        char buffer[16];
        for (int fd : mine) right += ::read(fd, buffer, sizeof buffer) == 5;
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(right == 1000);
    for (std::vector<int>& mine : fds) {
      for (int fd : mine) ::close(fd);
    }
  }
  ::setrlimit(RLIMIT_NOFILE, &limit);
}
