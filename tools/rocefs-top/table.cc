#include "tools/rocefs-top/table.h"

#include <string.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "core/base/text.h"
#include "tools/rocefs-top/printable.h"

namespace rocefs::top {
namespace {

std::string in_small_letters(std::string_view text) {
  std::string small(text);
  std::transform(small.begin(), small.end(), small.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return small;
}

// Numbers are not looked at: "12" would find every count.
bool has_word(const Row& row, const std::string& word, std::span<const Column> columns) {
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].text && in_small_letters(row.cells[i].text).find(word) != std::string::npos) {
      return true;
    }
  }
  return in_small_letters(row.key).find(word) != std::string::npos;
}

Mood mood_of_state(Screen screen, const std::string& text) {
  if (screen == Screen::kFlows) {
    if (text.starts_with("failed")) return Mood::kBad;
    return text == "running" ? Mood::kGood : Mood::kQuiet;
  }
  const bool good = text == "ACTIVE" || text == "up";
  return good ? Mood::kQuiet : Mood::kBad;
}

}  // namespace

std::optional<double> rate_of(const Column& column, const Record& record, const Record* earlier,
                              const Look& before, const Look& now) {
  const double seconds = seconds_between(before, now);
  if (!earlier || seconds == 0) return std::nullopt;
  const auto new_count = column.number({record, record, now});
  const auto old_count = column.number({*earlier, record, now});
  if (!new_count || !old_count || *new_count < *old_count) return std::nullopt;
  return (*new_count - *old_count) / seconds;
}

Order order_by(Screen screen, size_t column) {
  return {column, columns_of(screen)[column].text == nullptr};
}

Table::Table(Screen screen, const Look& before, const Look& now, bool counts, bool utf8)
    : screen_(screen), counts_(counts || seconds_between(before, now) == 0) {
  const auto columns = columns_of(screen);
  const std::vector<Record>& earlier = before.of(screen);
  rows_.reserve(now.of(screen).size());
  size_t at = 0;
  for (const Record& record : now.of(screen)) {
    // Records of two looks mostly are the same ones.
    const bool same = at < earlier.size() && earlier[at].key == record.key;
    const Record* old_record = same ? &earlier[at] : before.find(screen, record.key);
    at = old_record ? static_cast<size_t>(old_record - earlier.data()) + 1 : at;
    Row row{printable(record.key, utf8), {}, true};
    for (const Column& column : columns) {
      const Facts facts{record, record, now};
      Cell cell;
      if (column.text) {
        cell.text = printable(column.text(facts), utf8);
        cell.mood = column.name == "state" ? mood_of_state(screen, cell.text) : column.mood;
        if (cell.text == "PAUSED") row.idle = false;
        row.cells.push_back(std::move(cell));
        continue;
      }
      const bool rate = column.is_count && !counts_;
      const Unit unit = column.is_count && counts_ ? column.count_unit : column.unit;
      if (rate) cell.number = rate_of(column, record, old_record, before, now);
      if (!rate && unit != Unit::kNone) cell.number = column.number(facts);
      // Files are read one after the other: a full link may seem fuller.
      if (rate && unit == Unit::kPercent && cell.number)
        cell.number = std::min(*cell.number, 100.0);
      cell.text = cell.number ? number_text(*cell.number, unit) : "-";
      const bool some = cell.number && *cell.number != 0;
      const bool label = column.importance == 0;  // a number that is part of the name
      cell.mood = some || label ? column.mood : Mood::kQuiet;
      const bool busy = column.is_count || column.name == "octets";
      if (some && busy) row.idle = false;
      row.cells.push_back(std::move(cell));
    }
    if (row.cells.size() > 1 && screen == Screen::kFlows && record.texts[kFlowState] == "running") {
      row.idle = false;
    }
    rows_.push_back(std::move(row));
  }
}

std::string_view Table::title(size_t column) const {
  const Column& one = columns_of(screen_)[column];
  return one.is_count && counts_ && !one.count_title.empty() ? one.count_title : one.title;
}

void Table::sort(Order order) {
  const bool text = columns_of(screen_)[order.column].text != nullptr;
  auto before = [&](const Row& one, const Row& other) {
    const Cell& a = one.cells[order.column];
    const Cell& b = other.cells[order.column];
    if (text) {
      const int way = ::strverscmp(a.text.c_str(), b.text.c_str());
      return order.descending ? way > 0 : way < 0;
    }
    if (!a.number || !b.number) return a.number.has_value() && !b.number.has_value();
    return order.descending ? *a.number > *b.number : *a.number < *b.number;
  };
  std::stable_sort(rows_.begin(), rows_.end(), before);
}

void Table::filter(std::string_view words) {
  const std::string small = in_small_letters(words);
  const std::vector<std::string_view> wanted = split(small, "|");
  if (wanted.empty()) return;
  std::erase_if(rows_, [&](const Row& row) {
    return std::none_of(wanted.begin(), wanted.end(), [&](std::string_view word) {
      return has_word(row, std::string(word), columns_of(screen_));
    });
  });
}

void Table::drop_idle() {
  std::erase_if(rows_, [](const Row& row) { return row.idle; });
}

std::optional<size_t> Table::find(std::string_view word, size_t from) const {
  const std::string small = in_small_letters(word);
  for (size_t i = 0; i < rows_.size() && !small.empty(); ++i) {
    const size_t at = (from + i) % rows_.size();
    if (has_word(rows_[at], small, columns_of(screen_))) return at;
  }
  return std::nullopt;
}

}  // namespace rocefs::top
