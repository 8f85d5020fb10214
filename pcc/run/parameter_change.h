// Changes of parameters, given as text: parsed and checked first, then written into blocks.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "pcc/api/algorithm.h"
#include "pcc/api/parameter.h"

namespace rocefs {

struct ParameterChange {
  std::string name, value;
};
struct ParameterPlace {
  size_t offset;
  ParameterValue value;
};

// Null if the algorithm has no such parameter.
const PccAlgorithm::Parameter* find_parameter(const PccAlgorithm& algorithm, std::string_view name);
// ENOENT, with the reason.
Error no_parameter(const PccAlgorithm& algorithm, std::string_view name);
// The error names the parameter: ENOENT, EINVAL.
Result<std::vector<ParameterPlace>> parse_changes(const PccAlgorithm& algorithm,
                                                  std::span<const ParameterChange> changes);
// EINVAL if a parameter of the block is above the one that bounds it; the same for the initial
// block after the changes.
Result<void> check_bounds(const PccAlgorithm& algorithm, const uint8_t* block);
Result<void> check_bounds(const PccAlgorithm& algorithm, std::span<const ParameterPlace> places);
// `block` is as long as the algorithm's.
void write_places(std::span<const ParameterPlace> places, uint8_t* block);

}  // namespace rocefs
