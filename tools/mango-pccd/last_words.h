// Last message of a dying mango-pccd: the algorithm or plugin that was running.
#pragma once

#include <string_view>

namespace rocefs {

// Inherited socket to the daemon.
inline constexpr int kDaemonSocket = 3;

// Installs handlers that report a deadly signal to the daemon, with the algorithm's name and the
// queue pair, before its default action. Each thread calls this to get an alternate signal stack:
// its own may be exhausted.
void announce_own_death();

// Scope in which this thread loads a plugin, for the report. `file` outlives it.
class LoadingHere {
 public:
  explicit LoadingHere(const char* file);
  ~LoadingHere();
  LoadingHere(const LoadingHere&) = delete;
  LoadingHere& operator=(const LoadingHere&) = delete;
};

// Ends the process with all pollers, and tells the daemon why.
[[noreturn]] void end_because(std::string_view why);

}  // namespace rocefs
