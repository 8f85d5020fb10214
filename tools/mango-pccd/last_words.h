// What mango-pccd says when it dies: where it was.
#pragma once

#include <string_view>

namespace rocefs {

// The socket to the daemon, as it is inherited.
inline constexpr int kDaemonSocket = 3;

// A signal that an algorithm dies of is told to the daemon, with the algorithm's name and the queue
// pair, before it takes its course. Each thread calls this: its handlers get a stack of their own,
// for they must run when the thread has used up its own.
void announce_own_death();

// While one exists, this thread reads a plugin: what happens is the plugin's doing. `file` outlives
// it.
class LoadingHere {
 public:
  explicit LoadingHere(const char* file);
  ~LoadingHere();
  LoadingHere(const LoadingHere&) = delete;
  LoadingHere& operator=(const LoadingHere&) = delete;
};

// Ends the process, pollers and all, and tells the daemon why.
[[noreturn]] void end_because(std::string_view why);

}  // namespace rocefs
