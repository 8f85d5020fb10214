#include "tools/rocefs/rig/condition.h"

#include <fnmatch.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <optional>

namespace rocefs {
namespace {

// A decimal number and nothing else.
std::optional<long double> decimal(std::string_view text) {
  if (text.empty() || text.find_first_not_of("+-.0123456789") != std::string_view::npos) {
    return std::nullopt;
  }
  std::string copy(text);
  char* end = nullptr;
  long double value = std::strtold(copy.c_str(), &end);
  if (*end != '\0' || !std::isfinite(value)) return std::nullopt;
  return value;
}

}  // namespace

Result<Condition> Condition::parse(std::string_view text) {
  // A `!` that is none of `!=` belongs to a wildcard.
  const size_t at = std::min(text.find_first_of("=<>"), text.find("!="));
  if (at == std::string_view::npos) {
    return errorf(EINVAL, "'{}' is no condition: PATH=VALUE, PATH!=VALUE or 'PATH>NUMBER'", text);
  }
  if (at == 0) return errorf(EINVAL, "'{}' has no path", text);
  Condition condition;
  condition.path_ = text.substr(0, at);
  const bool two = text[at] != '=' && text.substr(at + 1, 1) == "=";
  const std::string_view name = text.substr(at, two ? 2 : 1);
  condition.pattern_ = text.substr(at + name.size());
  condition.requirement_ = std::string(name) + " " + condition.pattern_;
  if (name == "=") condition.requirement_ = "'" + condition.pattern_ + "'";
  if (name == "!=") condition.requirement_ = "other than '" + condition.pattern_ + "'";
  if (name == "=" || name == "!=") {
    condition.operator_ = name == "=" ? Operator::kEqual : Operator::kNotEqual;
    return condition;
  }
  std::optional<long double> number = decimal(condition.pattern_);
  if (!number) return errorf(EINVAL, "'{}': '{}' is no number", text, condition.pattern_);
  condition.number_ = *number;
  if (name == "<") condition.operator_ = Operator::kLess;
  if (name == "<=") condition.operator_ = Operator::kLessOrEqual;
  if (name == ">") condition.operator_ = Operator::kMore;
  if (name == ">=") condition.operator_ = Operator::kMoreOrEqual;
  return condition;
}

Result<bool> Condition::met_by(std::string_view text) const {
  if (operator_ == Operator::kEqual || operator_ == Operator::kNotEqual) {
    const bool equal = ::fnmatch(pattern_.c_str(), std::string(text).c_str(), 0) == 0;
    return equal == (operator_ == Operator::kEqual);
  }
  std::optional<long double> value = decimal(text);
  if (!value) return errorf(EINVAL, "'{}' is no number", text);
  switch (operator_) {
    case Operator::kLess:
      return *value < number_;
    case Operator::kLessOrEqual:
      return *value <= number_;
    case Operator::kMore:
      return *value > number_;
    default:
      return *value >= number_;
  }
}

}  // namespace rocefs
