// PrivateMount: a rocefs at a directory of its own. A process beside this one, the watcher, makes
// the directory and starts the server. It ends both when it is told to, or when this process has
// been killed, at whatever moment.
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
  // Whether somebody has unmounted it, or its server has ended or been killed before the call.
  bool ended() const;
  // Leaves it to others.
  void keep();
  // Unmounts, waits until its processes have ended, and removes the directory. Fails if that stays.
  Result<void> end();

 private:
  struct Server;

  Result<void> start(const std::string& pattern, Server server);
  void dismiss_watcher(char word);

  std::string directory_;
  pid_t watcher_ = -1;
  Fd lifeline_;  // to the watcher
};

}  // namespace rocefs
