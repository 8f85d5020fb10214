// The algorithms that need no plugin, as they stand in a slot. Their laws are those of the vendor's
// reference where it gives them; sources are named where it does not.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "pcc/api/algorithm.h"
#include "pcc/run/controller.h"

namespace rocefs {

// The tutorial's: a CNP cuts the window by a factor, its absence adds to it.
PccAlgorithm aimd_algorithm();
// DCQCN by windows.
PccAlgorithm dcqcn_algorithm();
// After TCP Vegas: keeps the backlog that round trips betray between two bounds.
PccAlgorithm rttvegas_algorithm();

// Adds aimd, dcqcn and rttvegas in slots 0, 1 and 2.
void add_built_ins(PccController& controller);
inline constexpr unsigned kBuiltIns = 3;

// The octets that each queue pair's copy of `parameters` begins as.
template <class Parameters>
std::vector<uint8_t> block_of(const Parameters& parameters) {
  auto* bytes = reinterpret_cast<const uint8_t*>(&parameters);
  return {bytes, bytes + sizeof parameters};
}
std::vector<PccAlgorithm::Parameter> parameters_of(std::span<const mango_pcc_param_t> rows);

// A window of so many octets, whatever the number is.
inline uint32_t whole_window(double window) {
  if (!(window > 0)) return 0;
  return window < 4294967295.0 ? static_cast<uint32_t>(window) : 0xffffffffu;
}
// `least` wins where the bounds contradict each other.
inline double bounded(double window, double least, double most) {
  return std::max(std::min(window, most), least);
}

}  // namespace rocefs
