#include "tools/mango-ctl/csv.h"

#include <algorithm>
#include <utility>

#include "core/base/text.h"

namespace rocefs {
namespace {

CsvRow row_of(std::string_view line) {
  CsvRow row(1);
  bool quoted = false;
  for (size_t at = 0; at < line.size(); ++at) {
    char letter = line[at];
    if (letter == '"') {
      bool doubled = quoted && line.substr(at + 1).starts_with('"');
      if (!doubled) {
        quoted = !quoted;
        continue;
      }
      ++at;
    } else if (letter == ',' && !quoted) {
      row.emplace_back();
      continue;
    }
    row.back() += letter;
  }
  return row;
}

}  // namespace

std::vector<CsvRow> csv_rows(std::string_view text) {
  std::vector<CsvRow> rows;
  for (std::string_view line : split(text, "\n")) {
    CsvRow row = row_of(line);
    if (rows.empty() || row.size() == rows[0].size()) rows.push_back(std::move(row));
  }
  return rows;
}

size_t csv_column(const CsvRow& header, std::string_view name) {
  return static_cast<size_t>(std::find(header.begin(), header.end(), name) - header.begin());
}

}  // namespace rocefs
