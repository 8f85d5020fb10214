// Built-in algorithms: their table, and what their files share.
//
// Laws follow the vendor's reference where it defines them; each file names its other sources.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "pcc/api/algorithm.h"
#include "pcc/run/controller.h"

namespace rocefs {

// The table: a row for each algorithm, in the order of their slots. Row `x` stands for
// pcc/algorithms/x.cc, which defines x_algorithm().
#define ROCEFS_BUILT_IN_ALGORITHMS(ROW) \
  ROW(aimd)                             \
  ROW(dcqcn)                            \
  ROW(rttvegas)

#define ROCEFS_DECLARE(NAME) PccAlgorithm NAME##_algorithm();
ROCEFS_BUILT_IN_ALGORITHMS(ROCEFS_DECLARE)
#undef ROCEFS_DECLARE

#define ROCEFS_COUNT(NAME) +1
inline constexpr unsigned kBuiltIns = 0 ROCEFS_BUILT_IN_ALGORITHMS(ROCEFS_COUNT);
#undef ROCEFS_COUNT
static_assert(kBuiltIns <= MANGO_PCC_MAX_SLOTS);

// Adds every algorithm of the table to the slots from 0 on.
void add_built_ins(PccController& controller);

// Initial bytes of each queue pair's copy of `parameters`.
template <class Parameters>
std::vector<uint8_t> block_of(Parameters parameters) {
#if __has_builtin(__builtin_clear_padding)
  __builtin_clear_padding(&parameters);  // a dump shows it
#endif
  auto* bytes = reinterpret_cast<const uint8_t*>(&parameters);
  return {bytes, bytes + sizeof parameters};
}
// Bounds of a parameter, beyond which its description in the vendor's reference makes no sense.
struct ParameterRule {
  std::string_view name;
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  std::string_view not_above = {};  // name of the parameter that bounds it; empty: none
};
constexpr ParameterRule at_most(std::string_view name, std::string_view other) {
  return {.name = name, .not_above = other};
}
std::vector<PccAlgorithm::Parameter> parameters_of(std::span<const mango_pcc_param_t> rows,
                                                   std::span<const ParameterRule> rules = {});

// Rounds down to octets, clipped to the range of uint32_t; 0 for NaN and negative numbers.
inline uint32_t whole_window(double window) {
  if (!(window > 0)) return 0;
  return window < 4294967295.0 ? static_cast<uint32_t>(window) : 0xffffffffu;
}
// Clips to [min, max]; `min` takes precedence if min > max.
inline double bounded(double window, double min, double max) {
  return std::max(std::min(window, max), min);
}

}  // namespace rocefs
