// The page of a View.
#include <fmt/format.h>

#include <algorithm>

#include "tools/rocefs-top/header.h"
#include "tools/rocefs-top/help.h"
#include "tools/rocefs-top/layout.h"
#include "tools/rocefs-top/view.h"

namespace rocefs::top {
namespace {

constexpr const char* kTabNames[kScreens] = {"Devices", "Links", "Queues", "Flows"};
constexpr const char* kFunctionNames[] = {"Help  ", "Screen", "Search", "Filter", "Counts",
                                          "SortBy", "Faster", "Slower", "Idle  ", "Quit"};
constexpr size_t kMenuWidth = 18;

// A header leaves at least as much to the table.
size_t header_height(size_t height) {
  return height >= 10 ? 4 : 0;
}

Line function_keys(size_t width) {
  Line line;
  int number = 1;
  for (const char* name : kFunctionNames) {
    const std::string key = fmt::format("F{}", number++);
    if (line.width() + key.size() + std::string(name).size() > width) break;
    line.add(key, Style::kKey).add(name, Style::kLabel);
  }
  return line.to(width, Style::kLabel);
}

}  // namespace

Line View::tab_line(const Table& table, size_t all_rows, size_t width) const {
  std::string state;
  Style style = Style::kQuiet;
  const Tab& tab = tabs_[static_cast<size_t>(screen_)];
  if (!failure_.empty()) {
    state = failure_;
    style = Style::kBad;
  } else if (paused_) {
    state = "PAUSED";
    style = Style::kNotable;
  } else if (time_stands()) {
    state = "virtual time stands: counts";
    style = Style::kNotable;
  } else {
    state = table.counts() ? "counts" : "rates";
  }
  if (hides_idle_ || !tab.filter.empty()) {
    state = fmt::format("{} of {} rows  ", table.rows().size(), all_rows) + state;
  }
  Line line;
  for (size_t i = 0; i < kScreens; ++i) {
    const std::string name = fmt::format(" {} {} ", i + 1, kTabNames[i]);
    if (line.width() + name.size() > width) break;
    line.add(name, i == static_cast<size_t>(screen_) ? Style::kChosenTab : Style::kTab);
  }
  const size_t room = width > line.width() + 2 ? width - line.width() - 2 : 0;
  state = cut(state, room);
  return line.to(width - std::min(width, width_of(state) + 1)).add(state, style);
}

Line View::last_line(Page& page, size_t width) const {
  const char* const ask = mode_ == Mode::kFilter   ? "Filter: "
                          : mode_ == Mode::kSearch ? "Search: "
                          : mode_ == Mode::kDelay  ? "Seconds between looks: "
                                                   : nullptr;
  Line line;
  if (!ask) {
    if (notice_.empty()) return function_keys(width);
    return line.add(cut(" " + notice_, width), Style::kPrompt).to(width, Style::kPrompt);
  }
  const std::string text = std::string(ask) + typed_;
  const size_t hidden = text.size() + 1 > width ? text.size() + 1 - width : 0;
  line.add(text.substr(hidden), Style::kPrompt);
  page.cursor = std::min(line.width(), width - 1);
  return line.to(width, Style::kPrompt);
}

void View::add_table(Page& page, size_t width, size_t height) {
  const Table shown = table();
  Tab& at = tab();
  const size_t all = now_->of(screen_).size();
  if (height > 1) page.lines.push_back(tab_line(shown, all, width));
  const size_t indent = mode_ == Mode::kSortMenu && width > 2 * kMenuWidth ? kMenuWidth : 0;
  const Layout layout = layout_of(shown, width - indent, at.skipped);
  auto put = [&](const Line& line) {
    Line moved;
    moved.to(indent);
    for (const Span& span : line.spans()) {
      if (moved.width() >= width) break;
      moved.add(cut(span.text, width - moved.width()), span.style);
    }
    page.lines.push_back(std::move(moved));
  };
  if (height > 2) put(title_line(shown, layout, at.order, width - indent));
  body_ = height > 3 ? height - 2 : 1;
  const size_t rows = shown.rows().size();
  at.selected = std::min(at.selected, rows ? rows - 1 : 0);
  at.top = std::min(at.top, rows > body_ ? rows - body_ : 0);
  at.top = std::clamp(at.top, at.selected + 1 > body_ ? at.selected + 1 - body_ : 0, at.selected);
  for (size_t i = 0; i < body_ && at.top + i < rows; ++i) {
    const size_t row = at.top + i;
    put(row_line(shown, layout, shown.rows()[row], row == at.selected, width - indent));
  }
  if (rows > 0) return;
  const bool some = all > 0;
  put(Line().add(some ? " No row matches; Esc ends the filter, i shows idle rows." : " None here.",
                 Style::kQuiet));
}

// Over the lines of the table, at their left.
void View::add_menu(Page& page, size_t width, size_t height) const {
  const auto columns = columns_of(screen_);
  const size_t top = header_height(height + 1) + 1;  // the line with the headings
  const size_t room = height > top + 1 ? height - top : 2;
  const size_t from = menu_ + 2 > room ? menu_ + 2 - room : 0;
  const size_t indent = std::min(width, kMenuWidth);
  for (size_t i = 0; i < room; ++i) {
    Line line;
    if (i == 0) {
      line.add(padded(" Sort by", indent - 1), Style::kTitle);
    } else if (from + i - 1 < columns.size()) {
      const size_t column = from + i - 1;
      std::string name(columns[column].name);
      std::replace(name.begin(), name.end(), '_', ' ');
      line.add(padded(" " + name, indent - 1), column == menu_ ? Style::kSelected : Style::kPlain);
    }
    if (top + i >= page.lines.size()) page.lines.resize(top + i + 1);
    line.to(indent);
    size_t left = indent;  // blanks of the table's line, which the menu stands on
    for (const Span& span : page.lines[top + i].spans()) {
      const size_t gone = std::min(left, span.text.size());
      left -= gone;
      line.add(span.text.substr(gone), span.style);
    }
    page.lines[top + i] = std::move(line);
  }
}

Page View::page(size_t width, size_t height) {
  width = std::max<size_t>(width, 1);
  height = std::max<size_t>(height, 1);
  if (mode_ == Mode::kHelp) return help_page(width, height);
  Page page;
  if (!now_) {
    const std::string text = failure_.empty() ? "Looking at " + mount_point_ : failure_;
    page.lines.push_back(Line().add(cut(" " + text, width)));
    return page;
  }
  if (header_height(height) > 0) {
    for (Line& line : header_lines(mount_point_, *now_, totals_of(*before_, *now_),
                                   counts_ || time_stands(), width)) {
      page.lines.push_back(std::move(line));
    }
  }
  const bool keys = height > 1;
  const size_t taken = page.lines.size() + (keys ? 1 : 0);
  add_table(page, width, height - taken);
  if (mode_ == Mode::kSortMenu) add_menu(page, width, height - 1);
  page.lines.resize(height - (keys ? 1 : 0));
  if (keys) page.lines.push_back(last_line(page, width));
  return page;
}

}  // namespace rocefs::top
