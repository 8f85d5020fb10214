// UTF-8 in text of others: what shows it, terminals, browsers and readers of JSON, may refuse
// octets that are none.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rocefs {

// Octets of the character that `text` begins with; 0 if it begins with no character (RFC 3629).
constexpr size_t utf8_character(std::string_view text) {
  auto octet = [&](size_t i) { return static_cast<unsigned char>(i < text.size() ? text[i] : 0); };
  const unsigned first = octet(0), second = octet(1);
  if (text.empty()) return 0;
  if (first < 0x80) return 1;
  const size_t size = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  if (size > text.size()) return 0;
  for (size_t i = 1; i < size; ++i) {
    if ((octet(i) & 0xc0) != 0x80) return 0;
  }
  // Longer than needed, a half of UTF-16, or beyond the last character.
  if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f)) return 0;
  if ((first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f)) return 0;
  return size;
}

// Replaces each octet that is part of no character by `?`.
inline std::string valid_utf8(std::string text) {
  for (size_t i = 0; i < text.size();) {
    const size_t size = utf8_character(std::string_view(text).substr(i));
    if (size == 0) text[i] = '?';
    i += size == 0 ? 1 : size;
  }
  return text;
}

}  // namespace rocefs
