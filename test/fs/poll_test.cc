// poll(2): wake-ups, their number, and what remains afterwards.
#include <poll.h>

#include "test/fs/mounted.h"

using namespace rocefs;
using namespace rocefs::test;

#define NEEDS_FUSE() \
  if (!fuse_here()) skip("no /dev/fuse here")

namespace {

// File that never changes: counts how often the kernel polls, and keeps no wake.
class Unchanging final : public File {
 public:
  bool readable() const override { return true; }
  bool writable() const override { return false; }
  uint64_t size() const override { return 0; }
  Result<std::unique_ptr<OpenFile>> open(const std::shared_ptr<File>& self,
                                         const Caller&) override {
    return {std::make_unique<Open>(std::static_pointer_cast<Unchanging>(self))};
  }
  std::atomic<int> polls{0};

 private:
  struct Open final : OpenFile {
    explicit Open(std::shared_ptr<Unchanging> of) : file(std::move(of)) {}
    void read(uint64_t, size_t, const OperationPtr&, Answer<std::string> answer) override {
      answer(std::string());
    }
    void write(std::string_view, const OperationPtr&, Answer<size_t> answer) override {
      answer(size_t{0});
    }
    short poll(Task) override {
      ++file->polls;
      return POLLIN;
    }
    std::shared_ptr<Unchanging> file;
  };
};

}  // namespace

TEST_CASE("fs: a file that keeps no wake-up is not polled again and again") {
  NEEDS_FUSE();
  Mounted mounted;
  auto file = std::make_shared<Unchanging>();
  mounted.control([&] { mounted.tree.add_file("flows/still", file); });
  int fd = ::open((mounted.path + "/flows/still").c_str(), O_RDONLY);
  pollfd watch{fd, POLLPRI, 0};
  CHECK(::poll(&watch, 1, 100) == 0);
  CHECK(file->polls <= 3);
  ::close(fd);
}

TEST_CASE("fs: repeated polls of one open file keep one wake-up, and closing it drops it") {
  auto file = constant("x");
  auto open = std::move(*file->open(file, {}));
  int woken = 0, dropped = 0;
  auto wake = [&]() -> Task {
    std::shared_ptr<void> held(nullptr, [&](void*) { ++dropped; });
    return [&woken, held = std::move(held)] { ++woken; };
  };
  for (int i = 0; i < 10; ++i) open->poll(wake());
  CHECK(dropped == 9);
  file->notify();
  CHECK(woken == 1);
  CHECK(dropped == 10);
  open->poll(wake());
  open.reset();
  CHECK(dropped == 11);
  file->notify();
  CHECK(woken == 1);
}

TEST_CASE("fs: removing a file wakes its pollers") {
  NEEDS_FUSE();
  Mounted mounted;
  auto file = constant("x");
  mounted.control([&] { mounted.tree.add_file("flows/f/state", file); });
  int fd = ::open((mounted.path + "/flows/f/state").c_str(), O_RDONLY);
  char buffer[16];
  REQUIRE(::read(fd, buffer, sizeof buffer) == 2);
  auto removed = std::async(std::launch::async,
                            [&] { mounted.control([&] { mounted.tree.remove("flows/f"); }); });
  pollfd watch{fd, POLLPRI, 0};
  CHECK(::poll(&watch, 1, 20'000) == 1);
  CHECK((watch.revents & POLLERR) != 0);
  removed.get();
  ::close(fd);
}
