#include "tools/mango-pccd/daemon_log.h"

#include "core/clock.h"
#include "pcc/card/messages.h"
#include "tools/mango-pccd/daemon_socket.h"

namespace rocefs {

void DaemonLog::log(LogLevel level, std::string_view text) {
  std::lock_guard lock(mutex_);
  if (!admit(monotonic_ns())) return;
  CardLog line{level, std::string(text.substr(0, kLongestLine))};
  if (!try_send_datagram(format_word(line))) ++left_out_;
}

bool DaemonLog::admit(TimeNs now) {
  if (now - second_ >= kSecond) {
    second_ = now;
    said_ = 0;
    if (left_out_ > 0) {
      CardLog line{LogLevel::kWarning, fmt::format("{} lines were left out", left_out_)};
      if (try_send_datagram(format_word(line))) left_out_ = 0;
    }
  }
  if (said_ >= kLinesPerSecond) {
    ++left_out_;
    return false;
  }
  ++said_;
  return true;
}

}  // namespace rocefs
