#include "pcc/algorithms/built_ins.h"
#include "pcc/run/call.h"
#include "rdma/uapi/registers.h"

namespace rocefs {
namespace aimd {
namespace {

struct Aimd {
  uint32_t alpha = 100;  // added by each call without a CNP, octets
  double beta = 0.5;     // factor at a call with CNPs
};

constexpr mango_pcc_param_t kParameters[] = {
    REGISTER_UINT32_PARAM(Aimd, alpha),
    REGISTER_DOUBLE_PARAM(Aimd, beta),
};
constexpr ParameterRule kRules[] = {{"beta", 0, 1}};

mango_pcc_result_t call(void* block, const mango_pcc_context_t* context) {
  auto& aimd = *static_cast<Aimd*>(block);
  double window = context->current_window;
  window = context->cnp_delta > 0 ? window * aimd.beta : window + aimd.alpha;
  mango_pcc_result_t result{};
  result.new_window = std::max(whole_window(window), ROCEFS_LEAST_WINDOW);
  if (PccCall* here = PccCall::current()) here->keep_block();
  return result;
}

}  // namespace
}  // namespace aimd

PccAlgorithm aimd_algorithm() {
  using namespace aimd;
  return {.name = "aimd",
          .desc = "additive increase, multiplicative decrease, by CNPs",
          .event = call,
          .metrics = MANGO_PCC_METRIC_CNP,
          .initial = block_of(Aimd{}),
          .parameters = parameters_of(kParameters, kRules)};
}

}  // namespace rocefs
