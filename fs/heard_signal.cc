#include "fs/heard_signal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/process/process_status.h"

namespace rocefs {
namespace {

constexpr uint64_t bit(int signal) {
  return uint64_t{1} << (signal - 1);
}
constexpr uint64_t kNews =
    bit(SIGCHLD) | bit(SIGCONT) | bit(SIGURG) | bit(SIGWINCH) | bit(SIGPROF) | bit(SIGVTALRM);

// Set of signals.
uint64_t signals_of(std::string_view status, std::string_view name) {
  return std::strtoull(std::string(field_of(status, name)).c_str(), nullptr, 16);
}

}  // namespace

HeardSignal heard_signal(const Caller& caller) {
  std::string status = text_at(AT_FDCWD, fmt::format("/proc/{}/status", caller.pid).c_str());
  if (!acts_as(status, caller.uid, caller.gid)) return HeardSignal::kStop;
  uint64_t pending = signals_of(status, "SigPnd:") | signals_of(status, "ShdPnd:");
  pending &= ~signals_of(status, "SigBlk:");
  if (pending == 0) return HeardSignal::kNone;
  return (pending & ~kNews) != 0 ? HeardSignal::kStop : HeardSignal::kNews;
}

}  // namespace rocefs
