// Text utilities: splitting into words, valid entry names, control characters of foreign text.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/utf8.h"

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

// Returns whether `name` may name a directory of the tree: [A-Za-z0-9_.-]+, at most 64, not hidden.
inline bool valid_entry_name(std::string_view name) {
  auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  };
  return !name.empty() && name.size() <= 64 && name[0] != '.' &&
         std::all_of(name.begin(), name.end(), allowed);
}

// Replaces each control character, and each octet that is not UTF-8, by `?`.
inline std::string in_one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(),
      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
  return valid_utf8(std::move(text));
}

// A program's name for itself, up to the first NUL, in one line: text after a line feed would pass
// for a log line of ours.
inline std::string program_name(std::string_view said) {
  return in_one_line(std::string(said.substr(0, said.find('\0'))));
}

}  // namespace rocefs
