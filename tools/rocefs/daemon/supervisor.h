// Supervisor: the process that outlives its workers. It holds the /dev/fuse descriptor, the socket
// to which verbs clients connect, the journal's memory, and the interfaces and namespaces of hosts;
// a worker serves the mount. When a worker
// dies, the next one takes over, and programs that use the mount only wait a little longer.
//
// A killed worker can stay in the kernel while one of its threads is in an uninterruptible wait.
// Such a worker is abandoned: the next one takes over beside it, and its answers may end that wait.
// If no worker can serve, the connection to the kernel is cut.
//
// A supervisor starts no thread and serves nothing itself, so that little in it can fail. When it
// is killed its worker dies with it, and a Guard ends the mount.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/fd.h"
#include "core/base/time.h"
#include "fs/cutoff.h"
#include "tools/rocefs/daemon/guard.h"
#include "tools/rocefs/daemon/saved_state.h"
#include "tools/rocefs/daemon/service_manager.h"

namespace rocefs {

// Descriptors that outlive a worker, by name.
using KeptDescriptors = std::map<std::string, Fd>;

// A worker's connection to its supervisor.
class WorkerLink {
 public:
  WorkerLink(Fd socket, int descriptor, Fd listener, KeptDescriptors kept)
      : socket_(std::move(socket)),
        descriptor_(descriptor),
        listener_(std::move(listener)),
        kept_(std::move(kept)) {}

  // Descriptor of the mount to take over; -1 for the first worker, which mounts.
  int descriptor() const { return descriptor_; }
  // Clients' listening socket that comes with the mount to take over; empty if there is none. Call
  // once.
  Fd take_listener() { return std::move(listener_); }
  // Descriptors that earlier workers have kept. Call once.
  KeptDescriptors take_kept() { return std::move(kept_); }
  static constexpr size_t kMaxName = 100;
  // Gives the supervisor a copy of a descriptor, for the next worker; -1: the supervisor closes its
  // copy. `name` has at most kMaxName octets.
  void keep(const std::string& name, int descriptor);
  // Gives the supervisor a copy of the clients' socket. Before ready().
  void listening(int listener);
  // Makes the supervisor close its copy: no client can connect any more.
  void listener_closed();
  // Reports that the mount is served. The supervisor keeps the descriptor.
  void ready(int descriptor);
  // Reports an orderly end of the mount: no other worker is started.
  void ending();
  // Resets the supervisor's watchdog.
  void alive();

 private:
  void send(char letter, int descriptor, const std::string& name = {});

  Fd socket_;
  int descriptor_;
  Fd listener_;
  KeptDescriptors kept_;
};

class Supervisor {
 public:
  // Runs a worker from start to end; returns its exit status, not 0 if it could not start.
  using Work = std::function<int(WorkerLink&)>;

  // Signals that end a daemon and SIGCHLD must be blocked. `mounted` is called when the first
  // worker is ready, with a status line; later states are reported to the manager from here. If
  // the manager has a watchdog, a worker that is silent for half of its time is killed, so that the
  // next one takes over before the manager's time is up.
  Supervisor(SavedState& saved, const ServiceManager& manager, Work work,
             std::function<void(const std::string&)> mounted)
      : saved_(saved), manager_(manager), work_(std::move(work)), mounted_(std::move(mounted)) {}

  // Period of a worker's WorkerLink::alive(); 0: no watchdog.
  static TimeNs alive_every(const ServiceManager& manager) { return manager.watchdog() / 8; }

  // Forks workers until the mount has ended. Returns the exit status.
  int run();

 private:
  int run_workers();
  void start_worker();
  // Runs until the worker has died; returns its status of waitpid(), or nothing if it is abandoned.
  std::optional<int> watch_worker();
  std::optional<int> reap();
  // True if the worker was dying at the last two checks.
  bool is_stuck();
  void begin_mounted();
  // False when no message waits.
  bool take_message();
  void take_descriptor(char letter, const char* name, Fd descriptor);
  void take_signal();
  void begin_shutdown();
  bool watchdog_runs() const;
  TimeNs poll_timeout() const;
  void count_silence();
  // Status line for people.
  std::string serving() const;
  void note_death(std::string cause);
  // Waits before the next worker is started. False after kMaxEarlyDeaths early deaths in a row.
  bool back_off(TimeNs lived);
  int give_up(const std::string& why);
  void end_mount();

  SavedState& saved_;
  const ServiceManager& manager_;
  Work work_;
  std::function<void(const std::string&)> mounted_;
  Fd signals_, socket_, descriptor_, listener_;
  KeptDescriptors kept_;
  pid_t worker_ = 0;
  bool ending_ = false;
  int early_deaths_ = 0;  // in a row
  int deaths_ = 0;
  Cutoff cutoff_;
  Guard guard_;
  std::vector<pid_t> abandoned_;  // workers
  bool serving_ = false;          // the worker
  TimeNs silence_ = 0;            // since the worker's last alive()
  bool hung_ = false;             // killed by the watchdog
  bool dying_ = false;            // at the last check
};

}  // namespace rocefs
