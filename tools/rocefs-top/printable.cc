#include "tools/rocefs-top/printable.h"

#include <wchar.h>

#include <algorithm>

namespace rocefs::top {
namespace {

struct Character {
  char32_t code = 0;  // 0: no UTF-8
  size_t octets = 1;
};

// Overlong forms, surrogates and what is beyond Unicode are no UTF-8.
Character first_of(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {lead, 1};
  const size_t octets = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < octets) return {};
  char32_t code = lead & (0x7fu >> octets);
  for (size_t i = 1; i < octets; ++i) {
    const auto octet = static_cast<unsigned char>(text[i]);
    if ((octet & 0xc0) != 0x80) return {};
    code = code << 6 | (octet & 0x3fu);
  }
  constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast[octets] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return {};
  return {code, octets};
}

}  // namespace

std::string printable(std::string_view text, bool utf8) {
  std::string shown;
  while (!text.empty()) {
    const Character one = first_of(text);
    const bool ascii = one.code >= 0x20 && one.code < 0x7f;
    const bool plain =
        ascii || (utf8 && one.code > 0x9f && ::wcwidth(static_cast<wchar_t>(one.code)) > 0);
    if (plain) {
      shown += text.substr(0, one.octets);
    } else {
      shown += '?';
    }
    text.remove_prefix(one.octets);
  }
  return shown;
}

size_t width_of(std::string_view text) {
  size_t width = 0;
  while (!text.empty()) {
    const Character one = first_of(text);
    const int columns = one.code < 0x80 ? 1 : ::wcwidth(static_cast<wchar_t>(one.code));
    width += static_cast<size_t>(std::max(columns, 1));
    text.remove_prefix(one.octets);
  }
  return width;
}

std::string cut(std::string_view text, size_t width) {
  if (width_of(text) <= width) return std::string(text);
  if (width == 0) return {};
  size_t taken = 0, columns = 0;
  for (;;) {
    const size_t octets = first_of(text.substr(taken)).octets;
    columns += width_of(text.substr(taken, octets));
    if (columns > width - 1) break;
    taken += octets;
  }
  return std::string(text.substr(0, taken)) + '~';
}

std::string padded(std::string_view text, size_t width, bool to_the_right) {
  std::string shown = cut(text, width);
  const std::string blanks(width - width_of(shown), ' ');
  return to_the_right ? blanks + shown : shown + blanks;
}

}  // namespace rocefs::top
