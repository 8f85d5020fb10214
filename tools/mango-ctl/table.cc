#include "tools/mango-ctl/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>

namespace rocefs {
namespace {

using Widths = std::vector<size_t>;

constexpr size_t kLeastText = 5;  // four letters and a space tell names apart

size_t sum_of(const Widths& widths) {
  return std::accumulate(widths.begin(), widths.end(), size_t{0});
}

// Widths at which no cell is cut.
Widths whole(std::span<const TableColumn> columns,
             const std::vector<std::vector<std::string>>& rows, size_t TableColumn::*minimum) {
  Widths widths;
  for (size_t i = 0; i < columns.size(); ++i) {
    widths.push_back(columns[i].*minimum);
    for (const auto& row : rows) widths[i] = std::max(widths[i], row[i].size() + 1);
  }
  return widths;
}

// Takes the room that is missing from the widest text, letter by letter.
void cut_texts(std::span<const TableColumn> columns, Widths& widths, size_t room) {
  for (size_t sum = sum_of(widths); sum > room; --sum) {
    size_t* widest = nullptr;
    for (size_t i = 0; i < columns.size(); ++i) {
      if (columns[i].cut && (!widest || widths[i] > *widest)) widest = &widths[i];
    }
    if (!widest || *widest <= kLeastText) return;
    --*widest;
  }
}

template <class Cell>
void add_line(std::string& text, std::span<const TableColumn> columns, const Widths& widths,
              const Cell& cell) {
  auto out = std::back_inserter(text);
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].number) {
      fmt::format_to(out, "{:>{}}", cell(i), widths[i]);
    } else {
      fmt::format_to(out, "{:<{}.{}}", cell(i), widths[i], widths[i] - 1);
    }
  }
  text += '\n';
}

}  // namespace

std::string table_text(std::span<const TableColumn> columns,
                       const std::vector<std::vector<std::string>>& rows, size_t width) {
  Widths widths = whole(columns, rows, &TableColumn::usual);
  if (sum_of(widths) > width) widths = whole(columns, rows, &TableColumn::least);
  cut_texts(columns, widths, width);
  std::string text;
  add_line(text, columns, widths, [&](size_t i) { return columns[i].name; });
  for (const auto& row : rows) {
    add_line(text, columns, widths, [&](size_t i) { return std::string_view(row[i]); });
  }
  return text;
}

}  // namespace rocefs
