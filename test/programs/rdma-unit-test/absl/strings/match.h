// Debian's absl::string_view is another type than std::string_view, which the suite takes it for.
#pragma once
#include <string_view>
namespace absl {
inline bool StartsWith(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}
}  // namespace absl
