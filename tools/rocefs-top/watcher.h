// Watcher: takes looks in a thread of its own, because a mount may be slow to answer, and keys are
// to be obeyed meanwhile.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "core/base/fd.h"
#include "core/base/result.h"
#include "tools/rocefs-top/look_reader.h"

namespace rocefs::top {

// The calls are for one thread. Without an answer of the mount the destructor does not return: a
// program that ends at once ends by _exit(2).
class Watcher {
 public:
  explicit Watcher(LookReader& reader);
  ~Watcher();

  // Asks for a look, unless one is under way.
  void ask();
  // A descriptor that is readable once a look is there.
  int descriptor() const { return done_.get(); }
  // The look; nothing before.
  std::optional<Result<Look>> take();

 private:
  void run();

  LookReader& reader_;
  Fd done_;
  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  bool asked_ = false, ending_ = false;
  std::optional<Result<Look>> look_;
  std::thread thread_;
};

}  // namespace rocefs::top
