// rocefs_bench [NAME…]: measures, and prints one table. All programs without a name.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "test/bench/benches.h"

namespace {

using namespace rocefs::bench;

void print(const Table& table) {
  fmt::print("{:<50} {:>14} {:>26} {:>7} {:>12}\n", "figure", "measured", "reference", "ratio",
             "goal");
  for (const Row& row : table) {
    std::string_view verdict = row.verdict == Row::Verdict::kMet      ? "  met"
                               : row.verdict == Row::Verdict::kMissed ? "  MISSED"
                                                                      : "";
    fmt::print("{:<50} {:>14} {:>26} {:>7} {:>12}{}\n", row.figure, row.measured, row.reference,
               row.ratio, row.goal, verdict);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Table table;
  for (const Bench& bench : kBenches) {
    bool wanted = argc == 1 || std::any_of(argv + 1, argv + argc,
                                           [&](char* name) { return bench.name == name; });
    if (!wanted) continue;
    fmt::print(stderr, "{}: {} …\n", bench.name, bench.doc);
    bench.run(table);
  }
  if (table.empty()) {
    fmt::print(stderr, "usage: rocefs_bench [NAME…], of\n");
    for (const Bench& bench : kBenches) fmt::print(stderr, "  {:<8} {}\n", bench.name, bench.doc);
    return 2;
  }
  print(table);
}
