#include "pcc/algorithms/built_ins.h"

#include <utility>

namespace rocefs {

std::vector<PccAlgorithm::Parameter> parameters_of(std::span<const mango_pcc_param_t> rows,
                                                   std::span<const ParameterRule> rules) {
  std::vector<PccAlgorithm::Parameter> parameters;
  for (const mango_pcc_param_t& row : rows) {
    parameters.push_back({row.name, row.type, row.offset});
    PccAlgorithm::Parameter& parameter = parameters.back();
    for (const ParameterRule& rule : rules) {
      if (rule.name != parameter.name) continue;
      parameter.min = rule.min;
      parameter.max = rule.max;
      parameter.not_above = rule.not_above;
    }
  }
  return parameters;
}

void add_built_ins(PccController& controller) {
  unsigned slot = 0;
#define ROCEFS_ADD(NAME) controller.add(slot++, NAME##_algorithm());
  ROCEFS_BUILT_IN_ALGORITHMS(ROCEFS_ADD)
#undef ROCEFS_ADD
}

}  // namespace rocefs
