// A daemon for a measurement, mounted in a private directory.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace rocefs::bench {

class Mount {
 public:
  // Runs on `cpu` alone if one is given. Errors are printed, and up() is false.
  // `option`: for -o, if not empty.
  explicit Mount(std::optional<int> cpu = std::nullopt, const std::string& option = {});
  ~Mount();
  Mount(const Mount&) = delete;
  Mount& operator=(const Mount&) = delete;

  bool up() const { return up_; }
  // The daemon's program, and the process that does the work.
  static std::string daemon();
  pid_t worker() const;
  std::string at(const std::string& file) const { return directory_ + "/" + file; }

 private:
  std::string directory_;
  pid_t pid_ = -1;
  bool up_ = false;
};

}  // namespace rocefs::bench
