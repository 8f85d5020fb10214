#include "core/base/kstrto.h"

#include <algorithm>
#include <cerrno>
#include <limits>

#include "core/base/text.h"
#include "core/base/utf8.h"

namespace rocefs {
namespace {

constexpr unsigned kNoDigit = 99;

unsigned digit_of(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  char lower = static_cast<char>(c | 0x20);
  if (lower >= 'a' && lower <= 'f') return static_cast<unsigned>(lower - 'a' + 10);
  return kNoDigit;
}

bool has_hex_prefix(std::string_view text) {
  return text.size() > 2 && text[0] == '0' && (text[1] | 0x20) == 'x' && digit_of(text[2]) < 16;
}

}  // namespace

std::string quoted(std::string_view text) {
  constexpr size_t kMaxShown = 64;
  if (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  bool cut = text.size() > kMaxShown;
  // No character is cut in two.
  size_t size = 0;
  for (size_t next = 0; next <= std::min(text.size(), kMaxShown);) {
    size = next;
    if (size == text.size()) break;
    next += std::max<size_t>(utf8_character(text.substr(size)), 1);
  }
  return fmt::format("'{}{}'", in_one_line(std::string(text.substr(0, size))), cut ? "…" : "");
}

Result<uint64_t> kstrtou64(std::string_view text, unsigned base) {
  std::string_view rest = text;
  if (!rest.empty() && rest[0] == '+') rest.remove_prefix(1);
  if (base == 0) base = has_hex_prefix(rest) ? 16 : !rest.empty() && rest[0] == '0' ? 8 : 10;
  if (base == 16 && has_hex_prefix(rest)) rest.remove_prefix(2);
  uint64_t value = 0;
  bool overflow = false;
  size_t digits = 0;
  for (; digits < rest.size() && digit_of(rest[digits]) < base; ++digits) {
    unsigned digit = digit_of(rest[digits]);
    if (value > (std::numeric_limits<uint64_t>::max() - digit) / base) overflow = true;
    value = value * base + digit;
  }
  // The kernel looks for overflow before it looks at what follows the digits.
  if (overflow) return errorf(ERANGE, "{} does not fit in 64 bits", quoted(text));
  rest.remove_prefix(digits);
  if (!rest.empty() && rest[0] == '\n') rest.remove_prefix(1);
  if (digits == 0 || !rest.empty()) return errorf(EINVAL, "{} is not a number", quoted(text));
  return value;
}

Result<bool> kstrtobool(std::string_view text) {
  char first = text.empty() ? '\0' : static_cast<char>(text[0] | 0x20);
  char second = text.size() < 2 ? '\0' : static_cast<char>(text[1] | 0x20);
  if (!text.empty() && text[0] == '1') return true;
  if (!text.empty() && text[0] == '0') return false;
  if (first == 'e' || first == 'y' || first == 't') return true;
  if (first == 'd' || first == 'n' || first == 'f') return false;
  if (first == 'o' && second == 'n') return true;
  if (first == 'o' && second == 'f') return false;
  return errorf(EINVAL, "{} is neither 1 nor 0", quoted(text));
}

Result<size_t> match_word(std::string_view text, std::span<const std::string_view> words) {
  for (size_t i = 0; i < words.size(); ++i) {
    if (text == words[i]) return i;
    if (text.size() == words[i].size() + 1 && text.back() == '\n' &&
        text.substr(0, words[i].size()) == words[i]) {
      return i;
    }
  }
  return errorf(EINVAL, "{} is not one of the words", quoted(text));
}

}  // namespace rocefs
