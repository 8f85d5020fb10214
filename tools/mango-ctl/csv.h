// CSV texts of the tree, as RFC 4180 has them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rocefs {

using CsvRow = std::vector<std::string>;

// Rows of a text, the header first; a row that has not as many fields as the header is left out.
// Fields in quotes may hold commas and doubled quotes, and end with their line.
std::vector<CsvRow> csv_rows(std::string_view text);
// Index of a name in the header; its size if there is none.
size_t csv_column(const CsvRow& header, std::string_view name);

}  // namespace rocefs
