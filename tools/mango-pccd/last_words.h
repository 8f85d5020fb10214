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

// Once, in the main thread, before plugins are loaded: a plugin that calls exit() is reported too,
// as is the plugin whose own thread dies.
void announce_own_exit();

// Scope in which this thread loads or unloads a plugin, for the report. Both texts outlive it.
class LoadingHere {
 public:
  explicit LoadingHere(const char* file, const char* doing = "loaded");
  const char* file() const { return file_; }
  const char* doing() const { return doing_; }
  ~LoadingHere();
  LoadingHere(const LoadingHere&) = delete;
  LoadingHere& operator=(const LoadingHere&) = delete;

 private:
  const char *file_, *doing_;
};

// Ends the process with all pollers, and tells the daemon why.
[[noreturn]] void end_because(std::string_view why);

}  // namespace rocefs
