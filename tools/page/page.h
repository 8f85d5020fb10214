// Page: what a browser gets, part of the program: the page of `rocefs view`, and the drawing code
// that it shares with a simulation's report.
#pragma once

#include <string_view>

namespace rocefs {

struct PageFile {
  std::string_view path;  // as in the request
  std::string_view type;  // Content-Type
  std::string_view content;
};

// Null if there is none of this path.
const PageFile* page_file(std::string_view path);

}  // namespace rocefs
