// Layout: which columns of a table are shown in a width, and its lines.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "tools/rocefs-top/page.h"
#include "tools/rocefs-top/table.h"

namespace rocefs::top {

struct Layout {
  struct Place {
    size_t column;
    size_t width;  // with the blank before it
  };
  std::vector<Place> places;
  size_t bar = 0;  // columns of bars beside the column that is drawn
};

// The most important columns that fit; names that are longer take room that is left. `skipped`
// columns behind the name make room for others.
Layout layout_of(const Table& table, size_t width, size_t skipped);

Line title_line(const Table& table, const Layout& layout, Order order, size_t width);
Line row_line(const Table& table, const Layout& layout, const Row& row, bool selected,
              size_t width);

}  // namespace rocefs::top
