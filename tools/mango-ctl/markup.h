// Markup of the table's texts: `word` is typed as it stands, <NAME> stands for a value, an empty
// line begins a paragraph.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rocefs {

// Text for a terminal: without the marks.
std::string plain(std::string_view text);
// Text for a manual page: `word` is bold, <NAME> italic.
std::string roff(std::string_view text);
// Text without marks, for a manual page.
std::string roff_literal(std::string_view text);
// Plain text in lines of at most 80 columns, all but the first indented; ends with a newline.
std::string filled(std::string_view text, size_t indent = 0);

}  // namespace rocefs
