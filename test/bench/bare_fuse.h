// A minimal FUSE server: one file with a constant text, requests read and answers written by bare
// system calls. The baseline for the cost of a mount.
#pragma once

#include <sys/types.h>

#include <string>

struct fuse_session;

namespace rocefs::bench {

class BareFuse {
 public:
  // Serves on `cpu` alone. Errors are printed, and up() is false.
  explicit BareFuse(int cpu);
  ~BareFuse();
  BareFuse(const BareFuse&) = delete;
  BareFuse& operator=(const BareFuse&) = delete;

  bool up() const { return pid_ > 0; }
  std::string file() const { return directory_ + "/file"; }

 private:
  std::string directory_;
  fuse_session* session_ = nullptr;
  pid_t pid_ = -1;
};

}  // namespace rocefs::bench
