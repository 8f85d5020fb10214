// Small tree, mounted for real in a private directory and served by a loop on a separate thread.
#pragma once

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "core/base/clock.h"
#include "core/base/kstrto.h"
#include "core/loop/poll_loop.h"
#include "core/tree/function_file.h"
#include "core/tree/tree.h"
#include "fs/mount_point.h"
#include "fs/session.h"
#include "test/skip.h"

namespace rocefs::test {

inline bool fuse_here() {
  return ::access("/dev/fuse", R_OK | W_OK) == 0;
}

class Mounted {
 public:
  // `place` is a directory to be removed at the end; empty: a new one.
  explicit Mounted(SessionOptions options = {}, std::string place = "")
      : path(std::move(place)), tree(0, 0), uint_value_(1000), bool_value_(1) {
    char name[] = "/tmp/rocefs-fs-test.XXXXXX";
    if (path.empty()) path = ::mkdtemp(name);
    add_files();
    options.mount_options = {"allow_other"};
    options.refused = [this](const std::string& at, const Caller&, const Error& why) {
      refusals.push_back(at + ": " + why.reason);
    };
    options.unmounted = [this] { loop.stop(); };
    auto created = Session::create(std::move(options), tree, loop);
    REQUIRE(created);
    session = std::move(*created);
    REQUIRE(session->mount(path));
    server_ = std::thread([this] { loop.run(); });
  }
  ~Mounted() {
    stop();
    session.reset();
    ::umount2(path.c_str(), MNT_DETACH);
    ::rmdir(path.c_str());
  }
  void stop() {
    loop.stop();
    if (server_.joinable()) server_.join();
  }

  // Runs a task on the control thread and waits.
  void control(std::function<void()> work) {
    std::promise<void> done;
    loop.post([&] {
      work();
      done.set_value();
    });
    done.get_future().wait();
  }
  std::string at(const std::string& file) const { return path + "/devices/mb/" + file; }
  static std::string read(const std::string& file) {
    std::ifstream in(file);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static int write(const std::string& file, const std::string& text) {
    int fd = ::open(file.c_str(), O_WRONLY | O_TRUNC);
    if (fd < 0) return errno;
    int code = ::write(fd, text.data(), text.size()) < 0 ? errno : 0;
    ::close(fd);
    return code;
  }

  std::string path;
  PollLoop loop;
  Tree tree;
  std::unique_ptr<Session> session;
  std::vector<std::string> refusals;  // control thread
  std::vector<Answer<void>> waiting;  // stores of `slow`; control thread
  std::atomic<int> waiting_count{0};
  std::atomic<int> interrupted{0};
  std::shared_ptr<Attribute> uint_file;

 private:
  using Text = Result<std::string>;

  void add_files() {
    const std::string dir = "devices/mb/";
    uint_file = read_write([this]() -> Text { return std::to_string(uint_value_); },
                           [this](std::string_view text, const OperationPtr&, Answer<void> answer) {
                             Result<uint64_t> value = kstrtou64(text, 0);
                             if (value && *value > UINT32_MAX)
                               value = Error{ERANGE, "more than 32 bits"};
                             if (!value) return answer(value.error());
                             bool changed = std::exchange(uint_value_, *value) != *value;
                             if (changed) uint_file->notify();
                             answer({});
                           });
    tree.add_file(dir + "uint", uint_file);
    tree.add_file(
        dir + "bool",
        read_write([this]() -> Text { return std::string(bool_value_ ? "1" : "0"); },
                   [this](std::string_view text, const OperationPtr&, Answer<void> answer) {
                     Result<bool> value = kstrtobool(text);
                     if (!value) return answer(value.error());
                     bool_value_ = *value;
                     answer({});
                   }));
    tree.add_file(
        dir + "enum",
        read_write(
            [this]() -> Text { return std::string(enum_value_ ? "low [high]" : "[low] high"); },
            [this](std::string_view text, const OperationPtr&, Answer<void> answer) {
              constexpr std::string_view kWords[] = {"low", "high"};
              Result<size_t> value = match_word(text, kWords);
              if (!value) return answer(value.error());
              enum_value_ = *value;
              answer({});
            }));
    tree.add_file(dir + "ro", constant("fixed"));
    tree.add_file(dir + "wo", write_only([](std::string_view, const OperationPtr&,
                                            Answer<void> answer) { answer({}); }));
    tree.add_file(dir + "slow",
                  write_only([this](std::string_view text, const OperationPtr& operation,
                                    Answer<void> answer) {
                    if (text != "deaf\n") operation->on_interrupt([this] { ++interrupted; });
                    waiting.push_back(std::move(answer));
                    ++waiting_count;
                  }));
    tree.add_file(dir + "dropped",
                  write_only([](std::string_view, const OperationPtr&, Answer<void>) {}));
    tree.add_link("class/net/mb", "devices/mb");
    tree.add_directory("flows", true);
  }

  uint64_t uint_value_, bool_value_, enum_value_ = 0;
  std::thread server_;
};

// Waits for a condition that another thread or process brings about.
template <class Condition>
bool wait_for(Condition condition) {
  TimeNs end = monotonic_ns() + 20 * kSecond;
  while (!condition()) {
    if (monotonic_ns() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace rocefs::test
