// Files of the user's: read whole, and written so that nobody sees half of one.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "core/base/result.h"

namespace rocefs {

Result<std::string> read_text(const std::string& file);

// A new file that takes the place of `target` when it is complete, or is gone with its object. It
// stands in the same directory under a hidden name.
class Replacement {
 public:
  static Result<Replacement> of(const std::string& target, mode_t mode);
  Replacement(Replacement&& other) noexcept;
  Replacement& operator=(Replacement&&) = delete;
  ~Replacement();

  const std::string& path() const { return path_; }
  // Adds to what is there.
  Result<void> write(std::string_view text);
  Result<void> commit();

 private:
  Replacement(std::string target, std::string path, mode_t mode)
      : target_(std::move(target)), path_(std::move(path)), mode_(mode) {}

  std::string target_, path_;
  mode_t mode_;
};

}  // namespace rocefs
