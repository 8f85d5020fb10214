#include "pcc/card/algorithm_info.h"

#include <cassert>
#include <utility>

#include "pcc/api/parameter.h"

namespace rocefs {

PccAlgorithmInfo describe(const PccAlgorithm& algorithm, unsigned slot) {
  PccAlgorithmInfo info{slot, algorithm.name, algorithm.desc, {}};
  for (const PccAlgorithm::Parameter& parameter : algorithm.parameters) {
    const uint8_t* value = algorithm.initial.data() + parameter.offset;
    info.parameters.emplace_back(parameter.name, format_parameter(parameter.type, value));
  }
  return info;
}

PccAlgorithmInfo describe(const PccController& controller, unsigned slot) {
  const PccAlgorithm* algorithm = controller.algorithm(slot);
  assert(algorithm);
  PccAlgorithmInfo info{slot, algorithm->name, algorithm->desc, {}};
  for (const PccAlgorithm::Parameter& parameter : algorithm->parameters) {
    Result<std::string> value = controller.value(slot, parameter.name);
    info.parameters.emplace_back(parameter.name, value ? *value : std::string());
  }
  return info;
}

std::vector<PccAlgorithmInfo> describe_all(const PccController& controller) {
  std::vector<PccAlgorithmInfo> all;
  for (unsigned slot = 0; slot < MANGO_PCC_MAX_SLOTS; ++slot) {
    if (controller.algorithm(slot)) all.push_back(describe(controller, slot));
  }
  return all;
}

}  // namespace rocefs
