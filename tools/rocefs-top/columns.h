// Columns of the screens: what each shows of a record, and how.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tools/rocefs-top/look.h"
#include "tools/rocefs-top/number_text.h"

namespace rocefs::top {

// A record at a moment. `newest` is what it is now, by whose knobs an earlier count is judged too.
struct Facts {
  const Record& record;
  const Record& newest;
  const Look& look;
};

// How a cell of more than 0 is shown.
enum class Mood : uint8_t { kPlain, kQuiet, kGood, kNotable, kBad };

struct Column {
  std::string_view name;   // for --sort
  std::string_view title;  // and behind it of a count, that of the count instead of its rate
  std::string_view count_title;
  uint8_t width;       // with the blank before it
  uint8_t importance;  // 0 is always shown, the highest is left out first
  Unit unit;           // of a value, or of a rate
  Unit count_unit = Unit::kNone;
  // In CSV: of a value or a rate, in the unit itself, and of a count.
  std::string_view csv, csv_count = {};
  Mood mood = Mood::kPlain;
  // Texts have no number. A count has `is_count`: shown is its growth in a second, or itself.
  std::optional<double> (*number)(const Facts&) = nullptr;
  std::string (*text)(const Facts&) = nullptr;
  bool is_count = false;
  bool bar = false;  // a percentage that is drawn, too

  bool to_the_right() const { return !text; }
};

// The first one is the record's name.
std::span<const Column> columns_of(Screen screen);
std::string_view name_of(Screen screen);
std::optional<Screen> screen_named(std::string_view name);
// Index of a column; nothing for another name.
std::optional<size_t> column_named(Screen screen, std::string_view name);

// The column of key P (what is busiest), and of key M (where congestion shows).
size_t busiest_column(Screen screen);
size_t congestion_column(Screen screen);

// Octets, Ethernet framing included, that a link's direction has transmitted.
std::optional<double> octets_on_wire(const Record& link);

}  // namespace rocefs::top
