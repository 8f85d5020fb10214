// Words of a line of the ini file.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rocefs {

// Takes `KEY=VALUE` out of `words`; nothing if there is none.
inline std::optional<std::string> take_word(std::vector<std::string_view>& words,
                                            std::string_view key) {
  for (auto word = words.begin(); word != words.end(); ++word) {
    if (!word->starts_with(key) || word->substr(key.size(), 1) != "=") continue;
    std::string value(word->substr(key.size() + 1));
    words.erase(word);
    return value;
  }
  return std::nullopt;
}

inline std::string joined(const std::vector<std::string_view>& words) {
  std::string text;
  for (std::string_view word : words) text.append(text.empty() ? "" : " ").append(word);
  return text;
}

}  // namespace rocefs
