// Text of the files that a load names, as editors and spreadsheets of other systems write it.
#pragma once

#include <string_view>

namespace rocefs {

// The text without the mark, which nobody sees, that it may begin with.
inline std::string_view without_byte_order_mark(std::string_view text) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
  return text;
}

}  // namespace rocefs
