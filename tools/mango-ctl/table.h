// Tables of text that fit into the width of a screen.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace rocefs {

struct TableColumn {
  const char* name;
  size_t usual;  // width with the space beside it, where there is room for all columns
  size_t least;  // where there is not; wider cells make a column wider
  bool number;   // to the right
  bool cut;      // where a line would be too long
};

// Lines of a table, the names first. Texts are cut where a line would be longer than
// `width`.
std::string table_text(std::span<const TableColumn> columns,
                       const std::vector<std::vector<std::string>>& rows, size_t width);

}  // namespace rocefs
