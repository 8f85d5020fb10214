// ProgressLine: the state of a run on a terminal, ten times a second at most, with the time to go.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <optional>
#include <string>

#include "core/base/clock.h"
#include "tools/rocefs/sim/simulation.h"
#include "tools/rocefs/sim/text_table.h"

namespace rocefs {

class ProgressLine {
 public:
  // `until`: the run's end; without one it ends with its flows.
  ProgressLine(std::string what, std::optional<TimeNs> until)
      : what_(std::move(what)), until_(until) {}
  ~ProgressLine() {
    if (shown_ > 0) std::fputs("\r\x1b[K", stderr);
  }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const RunProgress& progress) {
    TimeNs wall = monotonic_ns();
    if (!terminal_ || wall - shown_ < 100 * kMillisecond) return;
    shown_ = wall;
    std::fprintf(stderr, "\r\x1b[K%s: %.3f ms, %" PRIu64 " of %" PRIu64 " flows have ended%s",
                 what_.c_str(), static_cast<double>(progress.now) / 1e6, progress.ended,
                 progress.known, to_go(progress, wall).c_str());
  }

 private:
  // As if the rest went as fast as the run so far. Nothing in the first second, a guess too early.
  std::string to_go(const RunProgress& progress, TimeNs wall) const {
    auto whole = static_cast<double>(until_ ? static_cast<uint64_t>(*until_) : progress.expected);
    auto part = static_cast<double>(until_ ? static_cast<uint64_t>(progress.now) : progress.ended);
    TimeNs passed = wall - began_;
    if (passed < kSecond || part <= 0 || whole <= 0) return {};
    const double rest = static_cast<double>(passed) * (whole - part) / part;
    auto left = static_cast<TimeNs>(std::min(rest, 1e15));
    return ", " + seconds_to_go(left) + " to go";
  }

  const std::string what_;
  const std::optional<TimeNs> until_;
  const bool terminal_ = ::isatty(STDERR_FILENO);
  const TimeNs began_ = monotonic_ns();
  TimeNs shown_ = 0;
};

}  // namespace rocefs
