#include "tools/rocefs-top/batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "tools/rocefs-top/header.h"
#include "tools/rocefs-top/printable.h"

namespace rocefs::top {
namespace {

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return std::string(text);
  std::string quoted_text = "\"";
  for (char letter : text) {
    if (letter == '"') quoted_text += '"';
    quoted_text += letter;
  }
  return quoted_text + '"';
}

// Counts are whole numbers.
std::string csv_number(std::optional<double> number) {
  if (!number) return {};
  const bool whole = *number == static_cast<double>(static_cast<int64_t>(*number));
  return whole ? fmt::format("{}", static_cast<int64_t>(*number)) : fmt::format("{:.6g}", *number);
}

std::string trimmed(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

}  // namespace

std::string table_page(const std::string& mount_point, const Table& table, const Look& now) {
  const auto columns = columns_of(table.screen());
  std::string text = fmt::format("{}: {} clock {}, {} of {}\n", mount_point,
                                 now.virtual_clock ? "virtual" : "real", clock_text(now),
                                 table.counts() ? "counts" : "rates", name_of(table.screen()));
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns.size(); ++i) {
    size_t width = table.title(i).size();
    for (const Row& row : table.rows()) width = std::max(width, width_of(row.cells[i].text));
    widths.push_back(width + (i > 0 ? 2 : 0));
  }
  std::string line;
  for (size_t i = 0; i < columns.size(); ++i) {
    const std::string title(table.title(i));
    const bool right = columns[i].to_the_right();
    line += (i > 0 ? "  " : "") + padded(title, widths[i] - (i > 0 ? 2 : 0), right);
  }
  text += trimmed(line);
  for (const Row& row : table.rows()) {
    line.clear();
    for (size_t i = 0; i < columns.size(); ++i) {
      const bool right = columns[i].to_the_right();
      line += (i > 0 ? "  " : "") + padded(row.cells[i].text, widths[i] - (i > 0 ? 2 : 0), right);
    }
    text += trimmed(line);
  }
  return text;
}

std::string csv_heading(Screen screen) {
  std::string line = "time_ns,interval_ns";
  for (const Column& column : columns_of(screen)) {
    if (column.csv.empty()) continue;
    line += fmt::format(",{}", column.csv);
    if (!column.csv_count.empty()) line += fmt::format(",{}", column.csv_count);
  }
  return line + "\n";
}

std::string csv_lines(const Table& table, const Look& before, const Look& now) {
  const Screen screen = table.screen();
  const uint64_t interval = seconds_between(before, now) > 0 ? *now.now_ns - *before.now_ns : 0;
  std::string lines;
  for (const Row& row : table.rows()) {
    const Record* record = now.find(screen, row.key);
    if (!record) continue;  // a name that is not printable: no file of a mount has one
    lines += fmt::format("{},{}", now.now_ns.value_or(0), interval);
    const Facts facts{*record, *record, now};
    size_t at = 0;
    for (const Column& column : columns_of(screen)) {
      const Cell& cell = row.cells[at++];
      if (column.csv.empty()) continue;
      if (column.text) {
        lines += "," + csv_field(cell.text);
      } else if (column.is_count) {
        lines +=
            "," + csv_number(rate_of(column, *record, before.find(screen, row.key), before, now));
        if (!column.csv_count.empty()) lines += "," + csv_number(column.number(facts));
      } else {
        lines += "," + csv_number(column.number(facts));
      }
    }
    lines += "\n";
  }
  return lines;
}

}  // namespace rocefs::top
