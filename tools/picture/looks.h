// Looks: the texts of many files at one time, and what has changed since the time before.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rocefs {

// A text as it was before `get` (core/tree/get_file.h) escaped it.
std::string unescaped(std::string_view text);

// Parts of a path that the * of a pattern stand for, each a whole component; nullopt if the path is
// another one.
std::optional<std::vector<std::string_view>> stars_of(std::string_view pattern,
                                                      std::string_view path);

// One thread at a time.
class Looks {
 public:
  struct Line {
    std::string_view path, text;  // as `get` shows it, without newline
  };

  // The text of the next look, empty, to be filled with what `get` gives; then take() makes it the
  // last one. Without take() the last look stays.
  std::string& begin();
  void take();

  // Valid until the next take().
  const std::vector<Line>& lines() const { return looks_[last_].lines; }
  // Whether the last look has other files than the one before; the first one does.
  bool other_files() const { return other_files_; }
  // Lines, as indices, whose text has changed since the look before; all with other_files().
  const std::vector<uint32_t>& changed() const { return changed_; }

 private:
  struct Look {
    std::string text;
    std::vector<Line> lines;  // which point into it

    void split();
  };

  Look looks_[2];
  size_t last_ = 0;  // the other one is written
  std::vector<uint32_t> changed_;
  bool other_files_ = true;
};

}  // namespace rocefs
