// Files of the user: read whole, and replaced as a whole.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "core/base/result.h"

namespace rocefs {

Result<std::string> read_text(const std::string& file);

// New file in the directory of `target`, under a hidden name. commit() puts it in place of
// `target`; without that the destructor removes it.
class Replacement {
 public:
  static Result<Replacement> of(const std::string& target, mode_t mode);
  Replacement(Replacement&& other) noexcept;
  Replacement& operator=(Replacement&&) = delete;
  ~Replacement();

  const std::string& path() const { return path_; }
  // Appends.
  Result<void> write(std::string_view text);
  Result<void> commit();

 private:
  Replacement(std::string target, std::string path, mode_t mode)
      : target_(std::move(target)), path_(std::move(path)), mode_(mode) {}

  std::string target_, path_;
  mode_t mode_;
};

}  // namespace rocefs
