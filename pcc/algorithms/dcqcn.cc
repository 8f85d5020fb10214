// DCQCN (Zhu et al., SIGCOMM 2015) with windows for rates. One call stands for the paper's rate
// timer, alpha timer and reduction monitor; there is no byte counter.
#include "pcc/algorithms/built_ins.h"
#include "pcc/run/call.h"
#include "rdma/uapi/registers.h"

namespace rocefs {
namespace dcqcn {
namespace {

struct Dcqcn {
  uint32_t wai = 0x50;
  double g = 0.0625;
  uint32_t max_fast_steps = 3;
  uint32_t mode = 1;  // 0 deterministic, 1 probabilistic
  uint32_t threshold = 0;
  uint32_t max_window = 0x80000;
  uint32_t min_window = 0x1000;
  // State of the queue pair.
  double probability = 1;  // CP, the paper's alpha
  double window = 0;       // with the fraction that the register cannot hold
  double target = 0;       // RT; 0 before the first call
  uint32_t step = 0;       // calls since the last cut; saturates at max_fast_steps + 1
};

// Congestion probabilities below this one have no effect: 1 - p/2 is 1 in a double. They would
// become subnormal, with which the CPU is slow.
constexpr double kLeastProbability = 0x1p-64;

constexpr mango_pcc_param_t kParameters[] = {
    REGISTER_UINT32_PARAM(Dcqcn, wai),
    REGISTER_DOUBLE_PARAM(Dcqcn, g),
    REGISTER_UINT32_PARAM(Dcqcn, max_fast_steps),
    REGISTER_UINT32_PARAM(Dcqcn, mode),
    REGISTER_UINT32_PARAM(Dcqcn, threshold),
    REGISTER_UINT32_PARAM(Dcqcn, max_window),
    REGISTER_UINT32_PARAM(Dcqcn, min_window),
};
constexpr ParameterRule kRules[] = {
    {"g", 0, 1},
    {"mode", 0, 1},
    at_most("min_window", "max_window"),
};

void cut(Dcqcn& dcqcn, double g) {
  dcqcn.target = dcqcn.window;
  if (dcqcn.mode == 0) {
    dcqcn.window *= 1 - dcqcn.probability / 2;
  } else {
    PccCall* call = PccCall::current();
    if (call && call->rng().chance(dcqcn.probability)) dcqcn.window /= 2;
  }
  dcqcn.probability = (1 - g) * dcqcn.probability + g;
  dcqcn.step = 0;
}

void raise(Dcqcn& dcqcn, double g) {
  dcqcn.probability *= 1 - g;
  if (dcqcn.probability < kLeastProbability) dcqcn.probability = 0;
  if (dcqcn.step <= dcqcn.max_fast_steps) ++dcqcn.step;
  if (dcqcn.step > dcqcn.max_fast_steps) dcqcn.target += dcqcn.wai;
  dcqcn.window = (dcqcn.target + dcqcn.window) / 2;
}

void bound(Dcqcn& dcqcn) {
  const uint32_t most = std::max(dcqcn.max_window, ROCEFS_LEAST_WINDOW);
  dcqcn.window = bounded(dcqcn.window, std::max(dcqcn.min_window, ROCEFS_LEAST_WINDOW), most);
  // A target above the largest window has no effect: a cut begins at the window.
  if (dcqcn.window >= most) dcqcn.target = std::min(dcqcn.target, dcqcn.window);
}

mango_pcc_result_t call(void* block, const mango_pcc_context_t* context) {
  auto& dcqcn = *static_cast<Dcqcn*>(block);
  const double probability = dcqcn.probability, window = dcqcn.window, target = dcqcn.target;
  const uint32_t step = dcqcn.step;
  // Window set by another algorithm before this one.
  if (whole_window(window) != context->current_window) dcqcn.window = context->current_window;
  if (dcqcn.target == 0) dcqcn.target = dcqcn.window;
  double g = dcqcn.g >= 0 ? std::min(dcqcn.g, 1.0) : 0;
  if (context->cnp_delta > dcqcn.threshold) {
    cut(dcqcn, g);
  } else {
    raise(dcqcn, g);
  }
  bound(dcqcn);
  if (dcqcn.window == window && dcqcn.target == target && dcqcn.probability == probability &&
      dcqcn.step == step) {
    if (PccCall* here = PccCall::current()) here->keep_block();
  }
  mango_pcc_result_t result{};
  result.new_window = whole_window(dcqcn.window);
  return result;
}

}  // namespace
}  // namespace dcqcn

PccAlgorithm dcqcn_algorithm() {
  using namespace dcqcn;
  return {.name = "dcqcn",
          .desc = "DCQCN by windows: a congestion probability, fast recovery, active increase",
          .event = call,
          .metrics = MANGO_PCC_METRIC_CNP,
          .initial = block_of(Dcqcn{}),
          .parameters = parameters_of(kParameters, kRules)};
}

}  // namespace rocefs
