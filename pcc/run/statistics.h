// PccStatistics: calls and reads of signals, summed over all pollers.
#pragma once

#include <cstdint>

namespace rocefs {

struct PccStatistics {
  uint64_t calls = 0, cnp_reads = 0, rtt_reads = 0;
};

}  // namespace rocefs
