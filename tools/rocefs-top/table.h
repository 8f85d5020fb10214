// Table: the rows of a screen, from two looks at a mount, sorted and filtered.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/rocefs-top/columns.h"
#include "tools/rocefs-top/look.h"

namespace rocefs::top {

struct Cell {
  std::string text;              // printable; "-" where there is no value
  std::optional<double> number;  // of what is shown
  Mood mood = Mood::kPlain;
};

struct Row {
  std::string key;
  std::vector<Cell> cells;  // by column
  bool idle = true;         // neither traffic since the look before nor queued octets
};

struct Order {
  size_t column = 0;
  bool descending = true;
};
// Texts from A to Z, numbers from the largest.
Order order_by(Screen screen, size_t column);

// Any thread.
class Table {
 public:
  // Rates where engine time has passed between the looks, else, or with `counts`, the counts.
  // `utf8` as of printable().
  Table(Screen screen, const Look& before, const Look& now, bool counts, bool utf8);

  Screen screen() const { return screen_; }
  // Whether counts are shown in place of rates.
  bool counts() const { return counts_; }
  std::string_view title(size_t column) const;
  const std::vector<Row>& rows() const { return rows_; }

  // Equal rows stay in the order of their names; rows without a value come last.
  void sort(Order order);
  // Keeps rows in which a text has one of the `|`-separated words, in letters of any size.
  void filter(std::string_view words);
  void drop_idle();
  // The next row from `from` on whose texts have `word`, from the first one again behind the last.
  std::optional<size_t> find(std::string_view word, size_t from) const;

 private:
  Screen screen_;
  bool counts_;
  std::vector<Row> rows_;
};

// Growth of a count in a second between two looks. Nothing for a new record, or where the count
// began again.
std::optional<double> rate_of(const Column& column, const Record& record, const Record* earlier,
                              const Look& before, const Look& now);

}  // namespace rocefs::top
