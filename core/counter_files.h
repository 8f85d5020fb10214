// One read-only file per row of a counter table.
#pragma once

#include <string>

#include "core/counter.h"
#include "core/function_file.h"
#include "core/tree.h"

namespace rocefs {

// `counters` outlives the tree.
template <class Set>
void add_counter_file(Tree& tree, const std::string& directory, const CounterRow<Set>& row,
                      const Set& counters) {
  tree.add_file(fmt::format("{}/{}", directory, row.path),
                read_only([&counters, row]() -> Result<std::string> {
                  return fmt::format("{}", (counters.*row.member).get() / row.divisor);
                }));
}
template <class Set, size_t N>
void add_counter_files(Tree& tree, const std::string& directory, const CounterRow<Set> (&rows)[N],
                       const Set& counters) {
  for (const CounterRow<Set>& row : rows) add_counter_file(tree, directory, row, counters);
}

}  // namespace rocefs
