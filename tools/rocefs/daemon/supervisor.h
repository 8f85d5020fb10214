// Supervisor: the process that outlives its workers. It holds the /dev/fuse descriptor, the socket
// to which verbs clients connect and the journal's memory; a worker serves the mount. When a worker
// dies, the next one takes over, and who uses the mount only waits a little longer.
//
// A worker that was killed and that the kernel keeps, because one of its threads is in a wait that
// no signal ends, is left behind: the next one takes over beside it, and its answers may be what is
// waited for. Where no worker can, the connection to the kernel is cut.
//
// It starts no thread and serves nothing itself, so that there is next to nothing to fail in it.
// When it is killed its worker goes with it, and the mount is dead: a Guard sees to that.
#pragma once

#include <sys/types.h>

#include <functional>
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

// A worker's line to its supervisor.
class WorkerLink {
 public:
  WorkerLink(Fd socket, int descriptor, Fd listener)
      : socket_(std::move(socket)), descriptor_(descriptor), listener_(std::move(listener)) {}

  // The mount to take over; -1 for the first worker, which makes it.
  int descriptor() const { return descriptor_; }
  // The clients' socket, with the mount to take over. Nothing if there is none. Once.
  Fd take_listener() { return std::move(listener_); }
  // The supervisor keeps the clients' socket too; told before ready().
  void listening(int listener);
  // Clients connect no more: the supervisor lets go of their socket.
  void listens_no_more();
  // The mount is served from now on. The supervisor keeps the descriptor.
  void ready(int descriptor);
  // The mount ends as it should: no other worker is to come.
  void ending();
  // A sign of life, for Supervisor's watchdog.
  void alive();

 private:
  void send(char letter, int descriptor);

  Fd socket_;
  int descriptor_;
  Fd listener_;
};

class Supervisor {
 public:
  // A worker's whole life; returns its exit status: not 0 if it could not begin.
  using Work = std::function<int(WorkerLink&)>;

  // Signals that end a daemon and SIGCHLD must be blocked. `mounted` is called when the first
  // worker is ready, with a line that says what it serves; what comes after that the manager is
  // told here. When it has a watchdog, a worker without a sign of life for half its time is killed,
  // so that the next one can take over before the manager loses patience.
  Supervisor(SavedState& saved, const ServiceManager& manager, Work work,
             std::function<void(const std::string&)> mounted)
      : saved_(saved), manager_(manager), work_(std::move(work)), mounted_(std::move(mounted)) {}

  // How often a worker is to give a sign of life; 0: never.
  static TimeNs alive_every(const ServiceManager& manager) { return manager.watchdog() / 8; }

  // Forks workers until the mount has ended. Returns the exit status.
  int run();

 private:
  int run_workers();
  void start_worker();
  // Until it has died; returns how, as waitpid() does. Nothing: it is left behind.
  std::optional<int> watch_worker();
  std::optional<int> reap();
  // Whether it was killed a while ago, and is still there.
  bool is_kept();
  void begin_mounted();
  // False when there is none.
  bool take_message();
  void take_signal();
  void begin_end();
  bool wants_life() const;
  // How long to wait for something to happen.
  TimeNs patience() const;
  void count_silence();
  // One line for people.
  std::string serving() const;
  void note_death(std::string cause);
  bool comes_again_at_once(TimeNs lived);
  int give_up(const std::string& why);
  void end_mount();

  SavedState& saved_;
  const ServiceManager& manager_;
  Work work_;
  std::function<void(const std::string&)> mounted_;
  Fd signals_, socket_, descriptor_, listener_;
  pid_t worker_ = 0;
  bool ending_ = false;
  int early_deaths_ = 0;  // in a row
  int deaths_ = 0;
  Cutoff cutoff_;
  Guard guard_;
  std::vector<pid_t> left_;  // behind
  bool serving_ = false;     // the worker
  TimeNs silence_ = 0;       // how long a sign of life was waited for in vain
  bool hung_ = false;        // which is why it was killed
  bool dying_ = false;       // at the last look
};

}  // namespace rocefs
