// Daemon: the parts wired together: engine, fabric, tree, session.
#pragma once

#include <functional>
#include <memory>

#include "core/result.h"
#include "tools/rocefs/options.h"

namespace rocefs {

// Thrown away parts never run; `exit_code` tells main how to end: 2 for a bad file or command line.
struct Failure {
  int exit_code;
  std::string reason;
};

class Daemon {
 public:
  // Builds everything and mounts. Signals that end a daemon must be blocked before.
  static std::variant<std::unique_ptr<Daemon>, Failure> create(const Options& options);
  ~Daemon();

  // One line: what is mounted where.
  std::string summary() const;
  // Serves until SIGTERM, SIGINT, SIGHUP or an unmount; unmounts.
  void run();

 private:
  class Impl;
  explicit Daemon(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rocefs
