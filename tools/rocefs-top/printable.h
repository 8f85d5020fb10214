// Text of others, fit for a terminal: names, reasons and paths may hold whatever somebody put
// there. Widths are columns of a terminal, of the locale's wcwidth(3). Any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rocefs::top {

// `text` in one line. Control characters, characters without a width and octets that are no UTF-8
// become '?'; without `utf8` so does each character that is not ASCII.
std::string printable(std::string_view text, bool utf8);
// Columns of a text that is printable.
size_t width_of(std::string_view text);
// The first `width` columns of a printable text; a '~' at the end stands for a rest.
std::string cut(std::string_view text, size_t width);
// A text cut or filled up with blanks, at its left or its right, to `width` columns.
std::string padded(std::string_view text, size_t width, bool to_the_right = false);

}  // namespace rocefs::top
