// Every program of measurements, in the order of the table.
#pragma once

#include "test/bench/bench.h"

namespace rocefs::bench {

void bench_files(Table& table);

inline constexpr Bench kBenches[] = {
    {"files", "open, read to the end and close, against real sysfs", bench_files},
};

}  // namespace rocefs::bench
