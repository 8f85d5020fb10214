// OutputLines: what a program prints, line by line, from the pipe that is its standard output and
// error. The program never waits for the reader: what does not fit into the pipe is lost.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/fd.h"
#include "core/base/time.h"
#include "core/loop/loop_timer.h"
#include "core/loop/poll_loop.h"

namespace rocefs {

// Control thread.
class OutputLines {
 public:
  // Octets of a line; the rest of a longer one is the next.
  static constexpr size_t kMaxLine = 1024;

  // Makes the pipe. `line` gets each line that is not empty, without control characters; it must
  // not destroy the object. Null with errno.
  using Line = std::function<void(std::string_view line)>;
  static std::unique_ptr<OutputLines> make(PollLoop& loop, Line line);
  ~OutputLines();
  OutputLines(const OutputLines&) = delete;
  OutputLines& operator=(const OutputLines&) = delete;

  // The program's end, to be closed here once the program has it.
  Fd take_end() { return std::move(end_); }
  // Takes what the pipe holds, also a line without an end. Lines that come later, of the program's
  // children, are dropped.
  void finish();

 private:
  // Octets taken at once, then a rest: a program that prints without pause takes its own time only.
  static constexpr size_t kAtOnce = 64 * 1024;
  static constexpr TimeNs kRest = 50 * kMillisecond;

  OutputLines(PollLoop& loop, Fd pipe, Fd end, Line line);
  void watch();
  // False at the end of the output.
  bool read_some();
  void add(std::string_view bytes);
  void say();

  PollLoop& loop_;
  const Line line_;
  Fd pipe_, end_;
  LoopTimer rest_;
  std::string partial_;
};

}  // namespace rocefs
