#include "tools/rocefs-top/layout.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace rocefs::top {
namespace {

constexpr size_t kBar = 10;      // columns of a bar, with its brackets and the blank before it
constexpr size_t kWideBar = 32;  // where there is room

Style style_of(Mood mood) {
  switch (mood) {
    case Mood::kPlain:
      return Style::kPlain;
    case Mood::kQuiet:
      return Style::kQuiet;
    case Mood::kGood:
      return Style::kGood;
    case Mood::kNotable:
      return Style::kNotable;
    case Mood::kBad:
      return Style::kBad;
  }
  return Style::kPlain;
}

// Width that the texts of a column would like.
size_t wished_width(const Table& table, size_t column) {
  size_t widest = 0;
  for (const Row& row : table.rows()) {
    widest = std::max(widest, width_of(row.cells[column].text));
  }
  return widest + 1;
}

void add_bar(Line& line, const Cell& cell, size_t width, Style plain) {
  const size_t room = width - 3;
  const double part = std::clamp(cell.number.value_or(0) / 100, 0.0, 1.0);
  size_t bars = static_cast<size_t>(std::lround(part * static_cast<double>(room)));
  if (part > 0) bars = std::max<size_t>(bars, 1);
  const bool selected = plain == Style::kSelected;
  line.add(" [", plain).add(std::string(bars, '|'), selected ? plain : Style::kBar);
  line.add(std::string(room - bars, ' ') + "]", plain);
}

}  // namespace

Layout layout_of(const Table& table, size_t width, size_t skipped) {
  const auto columns = columns_of(table.screen());
  std::vector<size_t> by_importance;
  size_t left_out = 0;
  for (size_t i = 0; i < columns.size(); ++i) {
    // Beside counts, columns of counts alone say the same again.
    const bool twice = columns[i].csv.empty() && table.counts();
    const bool skip = columns[i].importance > 0 && left_out < skipped;
    if (skip) ++left_out;
    if (!skip && !twice) by_importance.push_back(i);
  }
  std::stable_sort(by_importance.begin(), by_importance.end(), [&](size_t one, size_t other) {
    return columns[one].importance < columns[other].importance;
  });
  Layout layout;
  size_t taken = 0;
  for (size_t column : by_importance) {
    const size_t bar = columns[column].bar && width >= 80 ? kBar : 0;
    const size_t wanted = columns[column].width + bar;
    if (taken + wanted > width && !layout.places.empty()) break;
    layout.places.push_back({column, columns[column].width});
    layout.bar = std::max(layout.bar, bar);
    taken += wanted;
  }
  std::sort(layout.places.begin(), layout.places.end(),
            [](const auto& one, const auto& other) { return one.column < other.column; });
  size_t left = width > taken ? width - taken : 0;
  for (Layout::Place& place : layout.places) {
    if (!columns[place.column].text) continue;
    const size_t wished = wished_width(table, place.column);
    const size_t more = std::min(left, std::max(wished, place.width) - place.width);
    place.width += more;
    left -= more;
  }
  if (layout.bar > 0) layout.bar += std::min(left, kWideBar - kBar);
  return layout;
}

Line title_line(const Table& table, const Layout& layout, Order order, size_t width) {
  const auto columns = columns_of(table.screen());
  Line line;
  for (const auto& [column, room] : layout.places) {
    const bool sorted = column == order.column;
    std::string title(table.title(column));
    // An arrow where there is room for one.
    if (sorted && title.size() + 2 <= room) title += order.descending ? "v" : "^";
    const Style style = sorted ? Style::kSorted : Style::kTitle;
    line.add(" ", Style::kTitle);
    line.add(padded(title, room - 1, columns[column].to_the_right()), style);
    if (columns[column].bar && layout.bar > 0)
      line.add(std::string(layout.bar, ' '), Style::kTitle);
  }
  return line.to(width, Style::kTitle);
}

Line row_line(const Table& table, const Layout& layout, const Row& row, bool selected,
              size_t width) {
  const auto columns = columns_of(table.screen());
  Line line;
  for (const auto& [column, room] : layout.places) {
    const Cell& cell = row.cells[column];
    const Style style = selected ? Style::kSelected : style_of(cell.mood);
    const Style plain = selected ? Style::kSelected : Style::kPlain;
    line.add(" ", plain);
    line.add(padded(cell.text, room - 1, columns[column].to_the_right()), style);
    if (columns[column].bar && layout.bar > 0) add_bar(line, cell, layout.bar, plain);
  }
  return selected ? line.to(width, Style::kSelected) : line;
}

}  // namespace rocefs::top
