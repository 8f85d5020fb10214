// LimitedLog: lines of dmesg that programs of any user can bring about: in a loop they would push
// out all others. Single-threaded.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/clock.h"
#include "core/base/log_limit.h"

namespace rocefs {

class LimitedLog {
 public:
  // `about`: begins the line that says how many were left out.
  LimitedLog(std::function<void(std::string_view line)> log, std::string about)
      : log_(std::move(log)), about_(std::move(about)) {}

  void say(std::string_view line) {
    auto note = [this](const std::string& text) {
      log_(fmt::format("{}: {}", about_, text));
      return true;
    };
    if (limit_.admit(monotonic_ns(), note)) log_(line);
  }

 private:
  std::function<void(std::string_view line)> log_;
  std::string about_;
  LogLimit limit_;
};

}  // namespace rocefs
