// A daemon of its own for a measurement, mounted in a private directory.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace rocefs::bench {

class Mount {
 public:
  // On `cpu` alone if one is given. What is wrong is printed, and up() is false.
  explicit Mount(std::optional<int> cpu = std::nullopt);
  ~Mount();
  Mount(const Mount&) = delete;
  Mount& operator=(const Mount&) = delete;

  bool up() const { return up_; }
  // The program that serves it, and the process of it that does the work.
  static std::string daemon();
  pid_t worker() const;
  std::string at(const std::string& file) const { return directory_ + "/" + file; }

 private:
  std::string directory_;
  pid_t pid_ = -1;
  bool up_ = false;
};

}  // namespace rocefs::bench
