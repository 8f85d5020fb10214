// Getter: looks at many files of a mount again and again, through its file `get`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/fd.h"
#include "core/base/result.h"
#include "tools/watch/mount_files.h"

namespace rocefs {

// A text as it was before `get` escaped it.
std::string unescaped(std::string_view text);

// Parts of a path that the * of a pattern stand for, each a whole component; nullopt if the path is
// another one.
std::optional<std::vector<std::string_view>> stars_of(std::string_view pattern,
                                                      std::string_view path);

// One thread at a time.
class Getter {
 public:
  struct Line {
    std::string_view path, text;  // as `get` shows it, without newline
  };

  // `patterns` as of `get`. `files` outlives it.
  Getter(const MountFiles& files, std::vector<std::string> patterns)
      : files_(files), patterns_(std::move(patterns)) {}

  // Takes a look. After an error, for example because the daemon's worker was replaced or the mount
  // has ended, the next look begins with a new open(2); lines() stay.
  Result<void> look();
  // Valid until the next look.
  const std::vector<Line>& lines() const { return looks_[last_].lines; }
  // Whether the last look found other files than the one before; the first look did.
  bool other_files() const { return other_files_; }
  // Lines, as indices, whose text has changed since the look before; all with other_files().
  const std::vector<uint32_t>& changed() const { return changed_; }

 private:
  struct Look {
    std::string text;
    std::vector<Line> lines;  // which point into it

    void split();
  };
  Result<void> read_all(std::string& text);

  const MountFiles& files_;
  const std::vector<std::string> patterns_;
  Fd file_;
  Look looks_[2];
  size_t last_ = 0;  // the other one is written
  std::vector<uint32_t> changed_;
  bool other_files_ = true;
};

}  // namespace rocefs
