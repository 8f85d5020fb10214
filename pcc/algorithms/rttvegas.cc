// Backlog of a window in queues: window (1 - base / rtt), where base is the minimum round trip so
// far (Brakmo and Peterson, TCP Vegas, 1995).
#include "pcc/algorithms/built_ins.h"
#include "pcc/run/call.h"
#include "rdma/uapi/registers.h"

namespace rocefs {
namespace rttvegas {
namespace {

struct RttVegas {
  uint32_t timeout_us = 20;
  uint32_t poll_interval_us = 1;
  uint32_t alpha = 4096;
  uint32_t beta = 16384;
  uint32_t mss = 1024;
  double d_factor = 0.99;
  uint32_t min_window = 0x1000;
  uint32_t max_window = 0x500000;
  // State of the queue pair.
  uint64_t base_ns = 0;  // 0 before the first round trip
};

constexpr mango_pcc_param_t kParameters[] = {
    REGISTER_UINT32_PARAM(RttVegas, timeout_us), REGISTER_UINT32_PARAM(RttVegas, poll_interval_us),
    REGISTER_UINT32_PARAM(RttVegas, alpha),      REGISTER_UINT32_PARAM(RttVegas, beta),
    REGISTER_UINT32_PARAM(RttVegas, mss),        REGISTER_DOUBLE_PARAM(RttVegas, d_factor),
    REGISTER_UINT32_PARAM(RttVegas, min_window), REGISTER_UINT32_PARAM(RttVegas, max_window),
};
constexpr ParameterRule kRules[] = {
    {"d_factor", 0, 1},
    at_most("alpha", "beta"),
    at_most("min_window", "max_window"),
};

// Window after a round trip.
double adjusted(RttVegas& vegas, double window, uint64_t rtt_ns) {
  if (rtt_ns == 0) return window;
  if (vegas.base_ns == 0 || rtt_ns < vegas.base_ns) vegas.base_ns = rtt_ns;
  double backlog = window * (1 - static_cast<double>(vegas.base_ns) / static_cast<double>(rtt_ns));
  if (backlog < vegas.alpha) {
    window += vegas.mss;
  } else if (backlog > vegas.beta) {
    window *= vegas.d_factor;
  }
  return bounded(window, vegas.min_window, vegas.max_window);
}

mango_pcc_result_t call(void* block, const mango_pcc_context_t* context) {
  auto& vegas = *static_cast<RttVegas*>(block);
  mango_pcc_result_t result{};
  result.new_window = context->current_window;
  if (context->rtt_updated) {
    double window = adjusted(vegas, context->current_window, context->latest_rtt_ns);
    result.new_window = std::max(whole_window(window), ROCEFS_LEAST_WINDOW);
  }
  PccCall* call = PccCall::current();
  if (call && call->due() && !call->probing()) {
    call->limit_probe(vegas.timeout_us * kMicrosecond, vegas.poll_interval_us * kMicrosecond);
    result.request_rtt_probe = 1;
  }
  return result;
}

}  // namespace
}  // namespace rttvegas

PccAlgorithm rttvegas_algorithm() {
  using namespace rttvegas;
  return {.name = "rttvegas",
          .desc = "keeps the backlog in queues between two bounds, by round-trip times",
          .event = call,
          .metrics = MANGO_PCC_METRIC_RTT,
          .initial = block_of(RttVegas{}),
          .parameters = parameters_of(kParameters, kRules)};
}

}  // namespace rocefs
