// Daemon: the parts wired together: engine, fabric, tree, session.
#pragma once

#include <functional>
#include <memory>

#include "core/config.h"
#include "core/journal.h"
#include "core/result.h"
#include "tools/rocefs/options.h"

namespace rocefs {

// Thrown away parts never run; `exit_code` tells main how to end: 2 for a bad file or command line.
struct Failure {
  int exit_code;
  std::string reason;
};

// What a worker finds.
struct Heritage {
  Journal& journal;  // of a Kept
  int descriptor;    // of the mount that it takes over; -1: it is the first and mounts
};

class Daemon {
 public:
  // Builds everything, and mounts or takes the mount over. Signals that end a daemon must be
  // blocked before.
  static std::variant<std::unique_ptr<Daemon>, Failure> create(const Options& options,
                                                               const Config& config, Heritage from);
  ~Daemon();

  // One line: what is mounted where.
  std::string summary() const;
  // The mount's: what another process needs to take it over.
  int descriptor() const;
  // Serves until SIGTERM, SIGINT, SIGHUP or an unmount; unmounts. `ending` is called first.
  void run(std::function<void()> ending);

 private:
  class Impl;
  explicit Daemon(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rocefs
