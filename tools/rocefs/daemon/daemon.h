// Daemon: a worker's mount: an Instance, its FUSE session and the servers of its clients.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "core/base/fd.h"
#include "core/base/result.h"
#include "core/base/time.h"
#include "core/config/config.h"
#include "core/takeover/journal.h"
#include "fs/invalidator.h"
#include "tools/rocefs/daemon/options.h"
#include "tools/rocefs/instance/instance.h"

namespace rocefs {

// Input of a worker from its supervisor.
struct TakeoverInput {
  Journal& journal;  // of a SavedState
  int descriptor;    // of the mount to take over; -1 for the first worker, which mounts
  Fd listener;       // clients' socket; empty if there is none, or none yet
  Invalidator invalidator;
  std::map<std::string, Fd> kept;  // descriptors of hosts, by name
  // Gives the supervisor a copy of a descriptor for the next worker; -1: it forgets it.
  std::function<void(const std::string& name, int descriptor)> keep;
};

// Events of a running daemon. Called on its control thread.
struct DaemonEvents {
  // The mount is served, and the clients' socket listens if it can be made.
  std::function<void()> ready;
  // The mount has left the mount table. Open files keep the file system; it ends with the last of
  // them, once every copy of listener() is closed.
  std::function<void()> detached;
  std::function<void()> ending;
  // Every `alive_every` of wall time while both threads make progress. 0: never.
  std::function<void()> alive;
  TimeNs alive_every = 0;
};

class Daemon {
 public:
  // Builds all parts, and mounts or takes the mount over. Signals that end a daemon must be
  // blocked.
  static std::variant<std::unique_ptr<Daemon>, Failure> create(const Options& options,
                                                               const Config& config,
                                                               TakeoverInput from);
  ~Daemon();

  // One line: mount point, devices, clock and seed.
  std::string summary() const;
  // Descriptors of the mount and of the clients' socket (-1 if there is none), for the supervisor.
  int descriptor() const;
  int listener() const;
  // Serves until SIGTERM, SIGINT, SIGHUP or an unmount; unmounts.
  void run(DaemonEvents events);

 private:
  class Impl;
  explicit Daemon(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rocefs
