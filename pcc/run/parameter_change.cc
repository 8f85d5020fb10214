#include "pcc/run/parameter_change.h"

#include <cerrno>
#include <cstring>

namespace rocefs {

const PccAlgorithm::Parameter* find_parameter(const PccAlgorithm& algorithm,
                                              std::string_view name) {
  for (const PccAlgorithm::Parameter& parameter : algorithm.parameters) {
    if (parameter.name == name) return &parameter;
  }
  return nullptr;
}

Error no_parameter(const PccAlgorithm& algorithm, std::string_view name) {
  return errorf(ENOENT, "{} has no parameter {}",
                algorithm.name.empty() ? "the algorithm" : algorithm.name, name);
}

Result<std::vector<ParameterPlace>> parse_changes(const PccAlgorithm& algorithm,
                                                  std::span<const ParameterChange> changes) {
  std::vector<ParameterPlace> places;
  for (const ParameterChange& change : changes) {
    const PccAlgorithm::Parameter* parameter = find_parameter(algorithm, change.name);
    if (!parameter) return no_parameter(algorithm, change.name);
    ParameterPlace place{parameter->offset, {}};
    Result<void> kept =
        keep(change.name, parse_parameter(parameter->type, change.value), place.value);
    if (!kept) return kept.error();
    double number = parameter_number(parameter->type, place.value.bytes.data());
    if (number < parameter->min || number > parameter->max) {
      return errorf(EINVAL, "{}: {} is outside {} to {}", change.name,
                    format_parameter(parameter->type, place.value.bytes.data()), parameter->min,
                    parameter->max);
    }
    places.push_back(place);
  }
  return places;
}

Result<void> check_bounds(const PccAlgorithm& algorithm, const uint8_t* block) {
  for (const PccAlgorithm::Parameter& lower : algorithm.parameters) {
    const PccAlgorithm::Parameter* upper = find_parameter(algorithm, lower.not_above);
    if (!upper) continue;
    const uint8_t *low = block + lower.offset, *high = block + upper->offset;
    if (parameter_number(lower.type, low) <= parameter_number(upper->type, high)) continue;
    return errorf(EINVAL, "{} {} is above {} {}", lower.name, format_parameter(lower.type, low),
                  upper->name, format_parameter(upper->type, high));
  }
  return {};
}

Result<void> check_bounds(const PccAlgorithm& algorithm, std::span<const ParameterPlace> places) {
  std::vector<uint8_t> block = algorithm.initial;
  write_places(places, block.data());
  return check_bounds(algorithm, block.data());
}

void write_places(std::span<const ParameterPlace> places, uint8_t* block) {
  for (const ParameterPlace& place : places) {
    std::memcpy(block + place.offset, place.value.bytes.data(), place.value.size);
  }
}

}  // namespace rocefs
