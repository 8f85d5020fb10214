// Words of text: cutting it into them, and which ones may be names.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

namespace rocefs {

// The non-empty parts of `text` between any of `separators`. They point into it.
inline std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    size_t end = std::min(text.find_first_of(separators), text.size());
    if (end > 0) parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

// Whether something that people name may be a directory of that name: [A-Za-z0-9_.-]+, at most 64,
// not hidden.
inline bool valid_entry_name(std::string_view name) {
  auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  };
  return !name.empty() && name.size() <= 64 && name[0] != '.' &&
         std::all_of(name.begin(), name.end(), allowed);
}

}  // namespace rocefs
