#include "pcc/card/output_lines.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/base/text.h"

namespace rocefs {

std::unique_ptr<OutputLines> OutputLines::make(PollLoop& loop, Line line) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return nullptr;
  return std::unique_ptr<OutputLines>(
      new OutputLines(loop, Fd(ends[0]), Fd(ends[1]), std::move(line)));
}

OutputLines::OutputLines(PollLoop& loop, Fd pipe, Fd end, Line line)
    : loop_(loop),
      line_(std::move(line)),
      pipe_(std::move(pipe)),
      end_(std::move(end)),
      rest_(loop, [this] { watch(); }) {
  watch();
}

OutputLines::~OutputLines() {
  if (pipe_) loop_.unwatch(pipe_.get());
}

void OutputLines::watch() {
  loop_.watch(pipe_.get(), [this] {
    loop_.unwatch(pipe_.get());
    if (read_some()) return rest_.arm(kRest);
    say();
    pipe_.reset();
  });
}

void OutputLines::finish() {
  if (!pipe_) return;
  loop_.unwatch(pipe_.get());
  rest_.disarm();
  read_some();
  say();
  pipe_.reset();
}

bool OutputLines::read_some() {
  for (size_t taken = 0; taken < kAtOnce;) {
    char bytes[4096];
    ssize_t got = ::read(pipe_.get(), bytes, sizeof bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return true;
    if (got <= 0) return false;
    taken += static_cast<size_t>(got);
    add({bytes, static_cast<size_t>(got)});
  }
  return true;
}

void OutputLines::add(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const size_t room = kMaxLine - partial_.size();
    const size_t some = std::min({end, bytes.size(), room});
    partial_ += bytes.substr(0, some);
    bytes.remove_prefix(some);
    const bool ends = !bytes.empty() && bytes[0] == '\n';
    if (ends) bytes.remove_prefix(1);
    if (ends || partial_.size() == kMaxLine) say();
  }
}

void OutputLines::say() {
  if (!partial_.empty()) line_(in_one_line(std::move(partial_)));
  partial_.clear();
}

}  // namespace rocefs
