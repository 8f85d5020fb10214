// Files with the semantics of devices: ioctl(2), messages, reads that wait.
#include <poll.h>
#include <sys/ioctl.h>

#include <deque>

#include "fs/saved_session.h"
#include "test/fs/child.h"
#include "test/here.h"

using namespace rocefs;
using namespace rocefs::test;

#define NEEDS_FUSE() \
  if (!fuse_here()) skip("no /dev/fuse here")
#define NEEDS_IOCTLS() \
  NEEDS_FUSE();        \
  if (!passes_ioctls()) skip("an ioctl(2) of an unknown number does not reach its file here")

namespace {

struct Argument {
  uint32_t in, out;
};
constexpr unsigned long kDouble = _IOWR('r', 1, Argument);
constexpr unsigned long kRefuse = _IOWR('r', 2, Argument);
constexpr unsigned long kCount = _IO('r', 3);
constexpr unsigned long kTell = _IOW('r', 4, uint32_t);
constexpr unsigned long kUnknown = _IO('r', 5);

// File that returns what is written to an open instance, message by message.
class Loopback final : public File {
 public:
  bool readable() const override { return true; }
  bool writable() const override { return true; }
  bool device() const override { return true; }
  mode_t mode() const override { return 0666; }
  uint64_t size() const override { return 0; }
  Result<std::unique_ptr<OpenFile>> open(const std::shared_ptr<File>& self,
                                         const Caller&) override {
    return {std::make_unique<Open>(std::static_pointer_cast<Loopback>(self))};
  }
  std::atomic<int> ioctls{0}, waiting{0}, interrupted{0};
  std::atomic<int> strange{0};  // calls whose arguments are not what they should be
  std::atomic<uint32_t> told{0};

 private:
  struct Open final : OpenFile {
    explicit Open(std::shared_ptr<Loopback> of) : file(std::move(of)) {}
    void read(uint64_t offset, size_t size, const OperationPtr& operation,
              Answer<std::string> answer) override {
      file->strange += offset != 0;
      if (!messages.empty()) {
        std::string message = std::move(messages.front());
        messages.pop_front();
        return answer(message.substr(0, size));
      }
      if (operation->nonblocking()) return answer(Error{EAGAIN, "nothing there"});
      operation->on_interrupt([this] {
        ++file->interrupted;
        reader = nullptr;
      });
      reader = std::move(answer);
      ++file->waiting;
    }
    void write(std::string_view data, const OperationPtr&, Answer<size_t> answer) override {
      answer(data.size());
      if (reader) return std::exchange(reader, nullptr)(std::string(data));
      messages.emplace_back(data);
      if (Task woken = std::exchange(wake, nullptr)) woken();
    }
    short poll(Task wake_up) override {
      if (wake_up) wake = std::move(wake_up);
      return static_cast<short>(POLLOUT | POLLWRNORM |
                                (messages.empty() ? 0 : POLLIN | POLLRDNORM));
    }
    void ioctl(uint32_t command, std::string_view argument, size_t room, const OperationPtr& asked,
               Answer<IoctlReply> answer) override {
      ++file->ioctls;
      Argument both{};
      if (argument.size() == sizeof both) std::memcpy(&both, argument.data(), sizeof both);
      std::string bytes(reinterpret_cast<const char*>(&both), sizeof both);
      switch (command) {
        case kDouble:
          file->strange += room != sizeof both;
          both.out = 2 * both.in;
          std::memcpy(bytes.data(), &both, sizeof both);
          return answer(IoctlReply{0, bytes});
        case kRefuse:
          both.out = 7;
          std::memcpy(bytes.data(), &both, sizeof both);
          return answer(IoctlReply{-EINVAL, bytes});
        case kCount:
          file->strange += !argument.empty() || room != 0;
          return answer(IoctlReply{file->ioctls});
        case kTell:
          file->strange += argument.size() != 4 || room != 0;
          return answer(IoctlReply{0, std::string(1000, 'x')});  // nobody has room for it
        default:
          return OpenFile::ioctl(command, argument, room, asked, std::move(answer));
      }
    }
    std::shared_ptr<Loopback> file;
    std::deque<std::string> messages;
    Answer<std::string> reader;
    Task wake;
  };
};

struct WithDevice : Mounted {
  WithDevice() {
    control([&] { tree.add_file("dev/loop", file); });
    fd = open();
  }
  ~WithDevice() {
    CHECK(file->strange == 0);
    ::close(fd);
  }
  int open(int flags = 0) { return ::open((path + "/dev/loop").c_str(), O_RDWR | flags); }
  std::shared_ptr<Loopback> file = std::make_shared<Loopback>();
  int fd;
};

}  // namespace

TEST_CASE("fs: a device's ioctl takes arguments and returns results, also with an errno") {
  NEEDS_IOCTLS();
  WithDevice device;
  Argument argument{21, 0};
  CHECK(::ioctl(device.fd, kDouble, &argument) == 0);
  CHECK(argument.out == 42);
  CHECK(::ioctl(device.fd, kRefuse, &argument) == -1);
  CHECK(errno == EINVAL);
  CHECK(argument.out == 7);
  CHECK(::ioctl(device.fd, kCount) == 3);
  uint32_t told = 5;
  CHECK(::ioctl(device.fd, kTell, &told) == 0);
  CHECK(::ioctl(device.fd, kDouble, nullptr) == -1);
  CHECK(errno == EFAULT);
  CHECK(::ioctl(device.fd, kUnknown) == -1);
  CHECK(errno == ENOTTY);
}

TEST_CASE("fs: an ioctl of a plain file or directory is ENOTTY and is not reported in dmesg") {
  NEEDS_IOCTLS();
  WithDevice device;
  int fd = ::open(device.at("uint").c_str(), O_RDWR);
  CHECK(::isatty(fd) == 0);
  CHECK(errno == ENOTTY);
  int directory = ::open(device.path.c_str(), O_RDONLY | O_DIRECTORY);
  CHECK(::ioctl(directory, kCount) == -1);
  CHECK(errno == ENOTTY);
  device.control([&] { CHECK(device.refusals.empty()); });
  ::close(fd);
  ::close(directory);
}

TEST_CASE("fs: a device has its own mode, no size and no position") {
  NEEDS_FUSE();
  WithDevice device;
  struct stat status {};
  REQUIRE(::fstat(device.fd, &status) == 0);
  CHECK((status.st_mode & 07777) == 0666);
  CHECK(status.st_size == 0);
  CHECK(::lseek(device.fd, 0, SEEK_SET) == -1);
  CHECK(errno == ESPIPE);
}

TEST_CASE("fs: a write to a device is one message of any content and length") {
  NEEDS_FUSE();
  WithDevice device;
  std::string sent(100'000, 'a');
  sent[3] = '\0';
  sent[4096] = '\n';
  REQUIRE(::write(device.fd, sent.data(), sent.size()) == 100'000);
  REQUIRE(::write(device.fd, "bc", 2) == 2);
  std::string got(200'000, 'x');
  CHECK(::read(device.fd, got.data(), 120'000) == 100'000);
  CHECK(got.substr(0, 100'000) == sent);
  CHECK(::read(device.fd, got.data(), got.size()) == 2);
}

TEST_CASE("fs: a read of a device waits, except with O_NONBLOCK, and does not block a write") {
  NEEDS_FUSE();
  WithDevice device;
  char buffer[16];
  int quick = device.open(O_NONBLOCK);
  CHECK(::read(quick, buffer, sizeof buffer) == -1);
  CHECK(errno == EAGAIN);
  ::fcntl(device.fd, F_SETFL, O_NONBLOCK);
  CHECK(::read(device.fd, buffer, sizeof buffer) == -1);
  CHECK(errno == EAGAIN);
  ::fcntl(device.fd, F_SETFL, 0);
  // Second descriptor of the same open file: with a position to guard, the kernel would block the
  // write until the read ends.
  int same = ::dup(device.fd);
  auto reader = std::async(std::launch::async, [&] { return ::read(same, buffer, sizeof buffer); });
  REQUIRE(wait_for([&] { return device.file->waiting == 1; }));
  CHECK(::write(device.fd, "late", 4) == 4);
  CHECK(reader.get() == 4);
  ::close(same);
  ::close(quick);
}

TEST_CASE("fs: a waiting reader of a device can be killed, and a caught signal gives EINTR") {
  NEEDS_FUSE();
  WithDevice device;
  for (int signal : {SIGKILL, SIGUSR1}) {
    int before = device.file->waiting;
    pid_t pid = ::fork();
    if (pid == 0) {
      ::close(device.session->descriptor());
      struct sigaction action {};
      action.sa_handler = [](int) {};
      ::sigaction(SIGUSR1, &action, nullptr);
      char buffer[16];
      ::_exit(::read(device.fd, buffer, sizeof buffer) < 0 ? errno : 0);
    }
    REQUIRE(wait_for([&] { return device.file->waiting == before + 1; }));
    ::kill(pid, signal);
    int status = status_of(pid);
    if (signal == SIGKILL) {
      CHECK(WTERMSIG(status) == SIGKILL);
    } else {
      CHECK(WEXITSTATUS(status) == EINTR);
    }
    CHECK(device.file->interrupted == before + 1);
  }
}

TEST_CASE("fs: a poll of a device wakes when a message arrives") {
  NEEDS_FUSE();
  WithDevice device;
  pollfd watch{device.fd, POLLIN | POLLOUT, 0};
  CHECK(::poll(&watch, 1, 0) == 1);
  CHECK(watch.revents == POLLOUT);
  watch.events = POLLIN;
  auto sent = std::async(std::launch::async, [&] { return ::write(device.fd, "x", 1); });
  CHECK(::poll(&watch, 1, 20'000) == 1);
  CHECK(watch.revents == POLLIN);
  CHECK(sent.get() == 1);
}

// Regression: each left a slot of 65,536 behind.
TEST_CASE("fs: a request that is answered later leaves nothing in the journal") {
  NEEDS_FUSE();
  auto journal = Journal::create(sizeof(SavedSession), 16 * 1024);
  REQUIRE(journal);
  auto& saved = (*journal)->state<SavedSession>();
  SessionOptions options;
  options.journal = journal->get();
  options.saved = &saved;
  Mounted mounted(std::move(options));
  for (int i = 1; i <= 50; ++i) {
    auto writer =
        std::async(std::launch::async, [&] { return Mounted::write(mounted.at("slow"), "go\n"); });
    REQUIRE(wait_for([&] { return mounted.waiting_count == i; }));
    mounted.control([&] { std::exchange(mounted.waiting.back(), nullptr)({}); });
    CHECK(writer.get() == 0);
  }
  mounted.control([&] {
    CHECK(saved.channel.in_flight_limit == 1);
    CHECK(saved.channel.in_flight[0] == 0);
  });
}
