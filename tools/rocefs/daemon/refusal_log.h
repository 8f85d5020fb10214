// RefusalLog: lines about refused stores. Users who are neither root nor the mount's owner have a
// limit of lines together: in a loop they would push out all others. Control thread.
#pragma once

#include <fmt/format.h>
#include <string.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/clock.h"
#include "core/base/log_limit.h"
#include "core/base/result.h"
#include "core/base/shares.h"
#include "core/process/identity.h"

namespace rocefs {

class RefusalLog {
 public:
  explicit RefusalLog(std::function<void(std::string_view line)> log) : log_(std::move(log)) {}

  void say(const std::string& path, const Caller& caller, const Error& why) {
    auto note = [this](const std::string& text) {
      log_("refused stores of other users: " + text);
      return true;
    };
    if (!is_privileged(caller.uid) && !strangers_.admit(monotonic_ns(), note)) return;
    log_(fmt::format("{}: {} ({})", path, why.reason, strerrorname_np(why.code)));
  }

 private:
  std::function<void(std::string_view line)> log_;
  LogLimit strangers_;
};

}  // namespace rocefs
