// As match.h, for the one form of StrSplit() that the suite calls.
#pragma once
#include <string>
#include <string_view>
#include <vector>
namespace absl {
struct SplitText {
  std::string_view text;
  char at;
  template <typename Part>
  operator std::vector<Part>() const {
    std::vector<Part> parts;
    for (size_t from = 0, end = 0; end != std::string_view::npos; from = end + 1) {
      end = text.find(at, from);
      parts.emplace_back(text.substr(from, end == std::string_view::npos ? end : end - from));
    }
    return parts;
  }
};
inline SplitText StrSplit(std::string_view text, char at) {
  return {text, at};
}
}  // namespace absl
