#include "tools/mango-ctl/calls.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/fd.h"

namespace rocefs {
namespace {

// Less than an algorithm's calls take to fill what the device keeps.
constexpr int kBetweenReadsMs = 10;

// Where whole lines go.
class Lines {
 public:
  Result<void> open(const std::string& file) {
    file_ = file;
    if (file == "-") return {};
    fd_ = Fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (!fd_) return failure();
    return {};
  }
  Result<void> add(std::string_view piece) {
    rest_ += piece;
    std::string_view whole = std::string_view(rest_).substr(0, rest_.rfind('\n') + 1);
    for (std::string_view left = whole; !left.empty();) {
      ssize_t size = ::write(fd_ ? fd_.get() : STDOUT_FILENO, left.data(), left.size());
      if (size < 0 && errno == EINTR) continue;
      if (size < 0) return failure();
      left.remove_prefix(static_cast<size_t>(size));
    }
    count_ += static_cast<uint64_t>(std::count(whole.begin(), whole.end(), '\n'));
    lost_ = lost_ || whole.starts_with("# ") || whole.find("\n# ") != whole.npos;
    rest_.erase(0, whole.size());
    return {};
  }
  uint64_t count() const { return count_; }
  bool lost() const { return lost_; }
  // Waits; false if no reader of stdout is left.
  bool wait() const {
    pollfd reader{fd_ ? -1 : STDOUT_FILENO, 0, 0};
    return ::poll(&reader, 1, kBetweenReadsMs) <= 0;
  }

 private:
  Error failure() const {
    return errorf(errno, "{}: {}", fd_ || file_ != "-" ? file_ : "stdout", std::strerror(errno));
  }

  std::string file_;
  Fd fd_;
  std::string rest_;  // of a line whose end is to come
  uint64_t count_ = 0;
  bool lost_ = false;
};

}  // namespace

Result<void> record_calls(Session& session, const std::string& device, const std::string& file,
                          bool follow) {
  const std::string path = device_file(device, "pcc/calls");
  Fd calls(::open(session.tree().absolute(path).c_str(), O_RDONLY | O_CLOEXEC));
  if (!calls) return errorf(errno, "{}: {}", path, std::strerror(errno));
  const std::string knob = device_file(device, "pcc/trace_calls");
  Result<std::string> traces = session.tree().value(knob);
  if (!traces) return traces.error();
  if (*traces == "0") {
    session.warn(fmt::format("calls are not recorded now: {} is 0, store 1 there", knob));
  }
  session.streams();
  Lines lines;
  if (Result<void> opened = lines.open(file); !opened) return opened;
  char piece[65536];
  for (bool warned = false;;) {
    ssize_t size = ::read(calls.get(), piece, sizeof piece);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return errorf(errno, "{}: {}", path, std::strerror(errno));
    if (size == 0 && (!follow || !lines.wait())) break;
    if (Result<void> added = lines.add({piece, static_cast<size_t>(size)}); !added) return added;
    if (lines.lost() && !std::exchange(warned, true)) {
      session.warn(
          "lines are lost, and the recording cannot be replayed: calls come faster than "
          "they are read");
    }
  }
  if (lines.count() < 2) session.warn("no call is recorded");
  return {};
}

}  // namespace rocefs
