#include <dirent.h>
#include <poll.h>

#include "test/fs/child.h"
#include "test/here.h"

using namespace rocefs;
using namespace rocefs::test;

#define NEEDS_FUSE() \
  if (!fuse_here()) skip("no /dev/fuse here")

TEST_CASE("fs: attributes pass the black-box check of sysfs behaviour") {
  NEEDS_FUSE();
  if (::geteuid() != 0) skip("root alone can make all of the check's calls");
  if (!kernel_is_ours()) skip("the kernel's O_DIRECT is not this program's");
  Mounted mounted;
  std::string command = "python3 test/fs/sysfs_conformance.py --imitation --wakes";
  for (const char* option :
       {"number uint", "bool bool", "read-only ro", "write-only wo", "words enum"}) {
    std::string_view words = option;
    size_t blank = words.find(' ');
    command += " --" + std::string(words.substr(0, blank)) + " " +
               mounted.at(std::string(words.substr(blank + 1)));
  }
  command += " --link " + mounted.path + "/class/net/mb > " + mounted.path + ".log 2>&1";
  int status = std::system(command.c_str());
  INFO(Mounted::read(mounted.path + ".log"));
  ::unlink((mounted.path + ".log").c_str());
  CHECK(status == 0);
}

TEST_CASE("fs: all readers see a new value as soon as the write has returned") {
  NEEDS_FUSE();
  Mounted mounted;
  std::atomic<uint64_t> written{0};
  std::atomic<bool> stop{false};
  std::atomic<int> stale{0}, reads{0};
  REQUIRE(Mounted::write(mounted.at("uint"), "0") == 0);
  auto reader = [&] {
    while (!stop) {
      uint64_t before = written;
      uint64_t seen = std::strtoull(Mounted::read(mounted.at("uint")).c_str(), nullptr, 10);
      if (seen < before) ++stale;
      ++reads;
    }
  };
  std::thread one(reader), two(reader);
  for (uint64_t value = 1; value <= 500; ++value) {
    int code = Mounted::write(mounted.at("uint"), std::to_string(value));
    written = value;
    if (code != 0) ++stale;
  }
  wait_for([&] { return reads > 100; });
  stop = true;
  one.join();
  two.join();
  CHECK(stale == 0);
}

TEST_CASE("fs: a waiting store does not hold up other files") {
  NEEDS_FUSE();
  Mounted mounted;
  pid_t waiting = start_writer(mounted, mounted.at("slow"), "go\n");
  REQUIRE(wait_for([&] { return mounted.waiting_count == 1; }));
  CHECK(Mounted::read(mounted.at("uint")) == "1000\n");
  CHECK(Mounted::write(mounted.at("uint"), "5") == 0);
  CHECK(Mounted::read(mounted.at("uint")) == "5\n");
  CHECK(::waitpid(waiting, nullptr, WNOHANG) == 0);
  mounted.control([&] { mounted.waiting[0]({}); });
  CHECK(status_of(waiting) == 0);
}

TEST_CASE("fs: a late answer gives its errno to the writer, and its reason is reported") {
  NEEDS_FUSE();
  Mounted mounted;
  pid_t waiting = start_writer(mounted, mounted.at("slow"), "go\n");
  REQUIRE(wait_for([&] { return mounted.waiting_count == 1; }));
  mounted.control([&] { mounted.waiting[0](Error{ETIMEDOUT, "took too long"}); });
  CHECK(WEXITSTATUS(status_of(waiting)) == ETIMEDOUT);
  mounted.control([&] {
    CHECK(mounted.refusals.size() == 1);
    CHECK(mounted.refusals[0] == "devices/mb/slow: took too long");
  });
}

TEST_CASE("fs: a waiting writer can be killed at once, and the mount goes on") {
  NEEDS_FUSE();
  Mounted mounted;
  for (int round = 1; round <= 20; ++round) {
    pid_t waiting = start_writer(mounted, mounted.at("slow"), "go\n");
    REQUIRE(wait_for([&] { return mounted.waiting_count == round; }));
    ::kill(waiting, SIGKILL);
    CHECK(WTERMSIG(status_of(waiting)) == SIGKILL);
    CHECK(mounted.interrupted == round);
    CHECK(Mounted::read(mounted.at("ro")) == "fixed\n");
  }
  // Late answers are dropped.
  mounted.control([&] {
    for (auto& answer : mounted.waiting) answer({});
  });
  CHECK(Mounted::read(mounted.at("ro")) == "fixed\n");
}

TEST_CASE("fs: a store that cannot be interrupted waits for its answer despite SIGKILL") {
  NEEDS_FUSE();
  Mounted mounted;
  pid_t waiting = start_writer(mounted, mounted.at("slow"), "deaf\n");
  REQUIRE(wait_for([&] { return mounted.waiting_count == 1; }));
  ::kill(waiting, SIGKILL);
  mounted.control([&] { mounted.waiting[0]({}); });
  CHECK(WTERMSIG(status_of(waiting)) == SIGKILL);
  CHECK(mounted.interrupted == 0);
}

TEST_CASE("fs: a dropped answer gives EIO") {
  NEEDS_FUSE();
  Mounted mounted;
  CHECK(Mounted::write(mounted.at("dropped"), "x") == EIO);
}

TEST_CASE("fs: entries may be removed while their directory is listed") {
  NEEDS_FUSE();
  Mounted mounted;
  for (int round = 0; round < 50; ++round) {
    mounted.control([&] {
      for (int i = 0; i < 40; ++i) {
        std::string flow = "flows/f" + std::to_string(i);
        mounted.tree.add_directory(flow, true);
        mounted.tree.add_file(flow + "/state", constant("running"));
      }
    });
    DIR* directory = ::opendir((mounted.path + "/flows").c_str());
    REQUIRE(directory);
    REQUIRE(::readdir(directory));
    mounted.control([&] {
      for (int i = 0; i < 40; ++i) mounted.tree.remove("flows/f" + std::to_string(i));
    });
    int names = 1;
    while (::readdir(directory)) ++names;
    ::closedir(directory);
    CHECK(names == 42);
    CHECK(::access((mounted.path + "/flows/f1").c_str(), F_OK) != 0);
  }
}

TEST_CASE("fs: an open file of a removed entry gives ENODEV, and its name can be reused") {
  NEEDS_FUSE();
  Mounted mounted;
  auto add = [&](const char* text) {
    mounted.control([&] { mounted.tree.add_file("flows/f/state", constant(text)); });
  };
  add("old");
  std::string file = mounted.path + "/flows/f/state";
  int fd = ::open(file.c_str(), O_RDONLY);
  REQUIRE(fd >= 0);
  char buffer[16];
  CHECK(::read(fd, buffer, sizeof buffer) == 4);
  mounted.control([&] { mounted.tree.remove("flows/f"); });
  CHECK(::pread(fd, buffer, sizeof buffer, 0) == -1);
  CHECK(errno == ENODEV);
  struct stat status {};
  CHECK(::fstat(fd, &status) == 0);  // as kernfs has it
  CHECK(status.st_size == 4096);
  CHECK(::open(file.c_str(), O_RDONLY) == -1);
  CHECK(errno == ENOENT);
  add("new");
  CHECK(Mounted::read(file) == "new\n");
  ::close(fd);
}

TEST_CASE("fs: a missing name is found once its addition is known, and missing after its removal") {
  NEEDS_FUSE();
  Mounted mounted;
  auto change = [&](const std::function<void()>& work) {
    std::promise<void> known;
    mounted.control([&] {
      work();
      mounted.tree.when_known([&] { known.set_value(); });
    });
    known.get_future().wait();
  };
  auto links = [&] {
    struct stat status {};
    ::stat(mounted.at("").c_str(), &status);
    return status.st_nlink;
  };
  const std::string file = mounted.at("late/state");
  for (int round = 0; round < 20; ++round) {
    CHECK(::access(file.c_str(), F_OK) == -1);
    CHECK(::access(mounted.at("late").c_str(), F_OK) == -1);
    CHECK(links() == 2);
    change([&] { mounted.tree.add_file("devices/mb/late/state", constant("here")); });
    CHECK(Mounted::read(file) == "here\n");
    CHECK(links() == 3);
    change([&] { mounted.tree.remove("devices/mb/late"); });
  }
}

TEST_CASE("fs: poll wakes with POLLPRI when an attribute changes") {
  NEEDS_FUSE();
  Mounted mounted;
  int fd = ::open(mounted.at("uint").c_str(), O_RDONLY);
  char buffer[16];
  REQUIRE(::read(fd, buffer, sizeof buffer) > 0);
  pollfd watch{fd, POLLPRI, 0};
  CHECK(::poll(&watch, 1, 0) == 0);
  auto changed =
      std::async(std::launch::async, [&] { return Mounted::write(mounted.at("uint"), "4711"); });
  CHECK(::poll(&watch, 1, 20'000) == 1);
  CHECK((watch.revents & (POLLPRI | POLLERR)) == (POLLPRI | POLLERR));
  CHECK(changed.get() == 0);
  ::close(fd);
}

TEST_CASE("fs: open files of one path are independent of each other") {
  NEEDS_FUSE();
  Mounted mounted;
  std::vector<int> fds;
  for (int i = 0; i < 500; ++i) fds.push_back(::open(mounted.at("uint").c_str(), O_RDWR));
  char buffer[16];
  REQUIRE(::read(fds[0], buffer, 1) == 1);
  REQUIRE(::write(fds[1], "22", 2) == 2);
  CHECK(::read(fds[0], buffer, sizeof buffer) == 4);  // the rest of 1000
  CHECK(::read(fds[2], buffer, sizeof buffer) == 3);
  for (int fd : fds) ::close(fd);
}

TEST_CASE("fs: a mount point is checked before it is mounted") {
  CHECK(check_mount_point("/nonexistent/x").error().code == ENOENT);
  CHECK(check_mount_point("/dev/null").error().code == ENOTDIR);
  NEEDS_FUSE();
  Mounted mounted;
  auto busy = check_mount_point(mounted.path);
  REQUIRE_FALSE(busy);
  CHECK(busy.error().code == EBUSY);
  CHECK(mounted_device(mounted.path).has_value());
  struct stat status;
  REQUIRE(::stat(mounted.path.c_str(), &status) == 0);
  CHECK(*mounted_device(mounted.path) == status.st_dev);
}

TEST_CASE("fs: an unknown mount option is an error of one line") {
  Tree tree(0, 0);
  PollLoop loop;
  SessionOptions options;
  options.mount_options = {"nonsense"};
  auto created = Session::create(std::move(options), tree, loop);
  REQUIRE_FALSE(created);
  CHECK(created.error().reason.find("nonsense") != std::string::npos);
  CHECK(created.error().reason.find('\n') == std::string::npos);
}
