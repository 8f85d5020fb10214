// Condition: a requirement on the text of files, as the command line of `rocefs wait` has it:
// PATH=PATTERN, PATH!=PATTERN or PATH<NUMBER, with <, <=, > or >=.
#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"

namespace rocefs {

class Condition {
 public:
  // EINVAL with the reason for a text that is no condition.
  static Result<Condition> parse(std::string_view text);

  // Pattern of glob(7), relative to the mount unless it begins with a slash.
  const std::string& path() const { return path_; }
  // Requirement in words: `'done'`, `other than 'done'`, `> 5`.
  const std::string& requirement() const { return requirement_; }

  // Whether a file's text, without a newline at its end, meets it. A pattern is that of a shell's
  // `case`; numbers are decimal. EINVAL where a number is required and the text is none.
  Result<bool> met_by(std::string_view text) const;

 private:
  enum class Operator { kEqual, kNotEqual, kLess, kLessOrEqual, kMore, kMoreOrEqual };

  std::string path_, requirement_, pattern_;
  Operator operator_ = Operator::kEqual;
  // 64 bits of mantissa at least: every counter is exact.
  long double number_ = 0;
};

}  // namespace rocefs
