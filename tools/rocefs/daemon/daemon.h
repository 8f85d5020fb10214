// Daemon: the parts wired together: engine, fabric, tree, session.
#pragma once

#include <functional>
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

// What a worker finds.
struct TakeoverInput {
  Journal& journal;  // of a SavedState
  int descriptor;    // of the mount that it takes over; -1: it is the first and mounts
  Fd listener;       // the clients' socket; nothing if there is none, or none yet
  Invalidator invalidator;
};

// What a daemon tells of itself while it runs. On its thread.
struct DaemonEvents {
  // The mount is served, and clients can connect if they ever will.
  std::function<void()> ready;
  // Nobody can come to the mount any more: clients connect no more, and the file system ends with
  // those who are still there, as soon as every copy of listener() is closed.
  std::function<void()> unlisted;
  std::function<void()> ending;
  // Every `alive_every` of wall time, as long as both threads do their work. 0: never.
  std::function<void()> alive;
  TimeNs alive_every = 0;
};

class Daemon {
 public:
  // Builds everything, and mounts or takes the mount over. Signals that end a daemon must be
  // blocked before.
  static std::variant<std::unique_ptr<Daemon>, Failure> create(const Options& options,
                                                               const Config& config,
                                                               TakeoverInput from);
  ~Daemon();

  // One line: what is mounted where.
  std::string summary() const;
  // The mount's, and the clients' socket (-1: there is none): what another process needs to take
  // them over.
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
