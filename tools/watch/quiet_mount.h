// QuietMount: a directory on a mount, held so that the mount can be ended meanwhile: files opened
// below the directory's path would make an unmount fail with EBUSY.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <string>

#include "core/base/fd.h"
#include "core/base/result.h"

namespace rocefs {

class QuietMount {
 public:
  // A copy of the mount that is in no mount table; where the kernel makes none for this user, the
  // mount itself. May start a process, and waits for it.
  static Result<QuietMount> open(const std::string& directory);

  // O_PATH.
  int root() const { return root_.get(); }
  // Any thread: whether the file system has left the mount table: whoever holds it, by files of
  // root() too, should let it go.
  bool ended() const;

 private:
  QuietMount(Fd root, Fd table, dev_t device)
      : root_(std::move(root)), table_(std::move(table)), device_(device) {}

  Fd root_;
  Fd table_;  // /proc/self/mountinfo
  dev_t device_;
  std::shared_ptr<std::atomic<bool>> ended_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace rocefs
