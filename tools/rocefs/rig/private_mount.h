// PrivateMount: a rocefs in the foreground, child of this process, at a directory of its own. If
// this process is killed, another one ends it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "core/base/fd.h"
#include "core/base/result.h"

namespace rocefs {

class PrivateMount {
 public:
  // Mounts at a new directory below $TMPDIR or /tmp. `options`: of -o; `config`: a file, or empty.
  static Result<PrivateMount> make(const std::vector<std::string>& options,
                                   const std::string& config);

  // An absolute path.
  const std::string& directory() const { return directory_; }
  // Whether it serves no more.
  bool ended();
  // Leaves it to others.
  void keep() { dismiss_watcher(); }
  // Unmounts, and waits until its processes have ended.
  void end();

 private:
  Result<void> start(const std::vector<std::string>& options, const std::string& config);
  [[noreturn]] void serve(const std::vector<std::string>& options, const std::string& config,
                          int output) const;
  void start_watcher();
  [[noreturn]] void watch(Fd lifeline) const;
  void dismiss_watcher();

  std::string directory_;
  pid_t server_ = -1, watcher_ = -1;
  Fd lifeline_;  // to the watcher
};

}  // namespace rocefs
