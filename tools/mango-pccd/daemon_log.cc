#include "tools/mango-pccd/daemon_log.h"

#include "core/base/clock.h"
#include "pcc/card/messages.h"
#include "tools/mango-pccd/daemon_socket.h"

namespace rocefs {

void DaemonLog::log(LogLevel level, std::string_view text) {
  std::lock_guard lock(mutex_);
  auto say = [level](const std::string& left_out) {
    return try_send_datagram(format_word(CardLog{level, left_out}));
  };
  LogLimit& limit = limits_[static_cast<size_t>(level)];
  if (!limit.admit(monotonic_ns(), say)) return;
  CardLog line{level, std::string(text.substr(0, kMaxLine))};
  if (!try_send_datagram(format_word(line))) limit.leave_out();
}

}  // namespace rocefs
