// TIMELY (Mittal et al., "TIMELY: RTT-based Congestion Control for the Datacenter", SIGCOMM 2015,
// algorithm 1, with hyperactive increase): a rate by the gradient of the round trip, measured once
// per segment. Windows do not limit.
//
//   mango-ctl rdma pcc algo cross-build tools/examples/timely.cc mb_0
//   mango-ctl rdma pcc algo load mb_0 && mango-ctl rdma pcc apply mb_0 timely
#include <libmango.h>
#include <rocefs_pcc.h>

#include <algorithm>
#include <iterator>

namespace {

struct Timely {
  double delta_mbps;     // additive step
  double beta;           // multiplicative decrease
  double alpha;          // weight of the newest difference of round trips
  unsigned int low_ns;   // T_low: below it the rate rises
  unsigned int high_ns;  // T_high: above it the rate falls
  unsigned int min_rtt_ns;
  unsigned int hai;      // rises in a row after which steps are five times as large
  unsigned int segment;  // octets
  unsigned int window;   // octets; a bound that is not to be met
  double min_mbps;
  // State of the queue pair.
  double rate_mbps;  // 0 before the first segment
  double rtt_ns;     // of the segment before
  double diff_ns;    // smoothed difference
  unsigned int rises;
  unsigned int octets;  // of the segment under way
};

constexpr Timely kInitial{.delta_mbps = 10,
                          .beta = 0.8,
                          .alpha = 0.875,
                          .low_ns = 50000,
                          .high_ns = 500000,
                          .min_rtt_ns = 20000,
                          .hai = 5,
                          .segment = 16384,
                          .window = 64u << 20,
                          .min_mbps = 10,
                          .rate_mbps = 0,
                          .rtt_ns = 0,
                          .diff_ns = 0,
                          .rises = 0,
                          .octets = 0};

const mango_pcc_param_t kParameters[] = {
    REGISTER_DOUBLE_PARAM(Timely, delta_mbps), REGISTER_DOUBLE_PARAM(Timely, beta),
    REGISTER_DOUBLE_PARAM(Timely, alpha),      REGISTER_UINT32_PARAM(Timely, low_ns),
    REGISTER_UINT32_PARAM(Timely, high_ns),    REGISTER_UINT32_PARAM(Timely, min_rtt_ns),
    REGISTER_UINT32_PARAM(Timely, hai),        REGISTER_UINT32_PARAM(Timely, segment),
    REGISTER_UINT32_PARAM(Timely, window),     REGISTER_DOUBLE_PARAM(Timely, min_mbps)};

void* init(mango_pcc_h pcc, unsigned int slot, size_t* size) {
  *size = sizeof(Timely);
  mango_pcc_params_register(pcc, slot, kParameters, std::size(kParameters));
  rocefs_pcc_param_range(pcc, slot, "delta_mbps", 0, 1e6);
  rocefs_pcc_param_range(pcc, slot, "alpha", 0, 1);
  rocefs_pcc_param_range(pcc, slot, "beta", 0, 1);
  rocefs_pcc_param_range(pcc, slot, "min_rtt_ns", 1, 1e9);
  rocefs_pcc_param_range(pcc, slot, "window", 256, 4294967295);
  // A rate of 0 would be none that limits.
  rocefs_pcc_param_range(pcc, slot, "min_mbps", 0.1, 1e6);
  return new Timely(kInitial);
}

void destroy(void* block) {
  delete static_cast<Timely*>(block);
}

void on_segment(Timely& timely, double rtt) {
  if (timely.rtt_ns == 0) timely.rtt_ns = rtt;
  double diff = rtt - timely.rtt_ns;
  timely.rtt_ns = rtt;
  timely.diff_ns = (1 - timely.alpha) * timely.diff_ns + timely.alpha * diff;
  double gradient = timely.diff_ns / timely.min_rtt_ns;
  if (rtt < timely.low_ns) {
    timely.rises = 0;
    timely.rate_mbps += timely.delta_mbps;
  } else if (rtt > timely.high_ns) {
    timely.rises = 0;
    timely.rate_mbps *= 1 - timely.beta * (1 - timely.high_ns / rtt);
  } else if (gradient <= 0) {
    ++timely.rises;
    timely.rate_mbps += (timely.rises >= timely.hai ? 5 : 1) * timely.delta_mbps;
  } else {
    timely.rises = 0;
    timely.rate_mbps *= 1 - timely.beta * std::min(gradient, 1.0);  // the bound is ours
  }
  double line = static_cast<double>(rocefs_pcc_line_rate()) / 1e6;
  timely.rate_mbps = std::max(std::min(timely.rate_mbps, line), timely.min_mbps);
}

mango_pcc_result_t call(void* block, const mango_pcc_context_t*) {
  auto& timely = *static_cast<Timely*>(block);
  rocefs_pcc_event_t event;
  while (rocefs_pcc_event_next(&event)) {
    if (event.type != ROCEFS_PCC_EVENT_ACK || event.rtt_ns == 0) continue;
    // The paper begins with the line's rate, shared by the sender's flows.
    if (timely.rate_mbps == 0) timely.rate_mbps = static_cast<double>(rocefs_pcc_line_rate()) / 1e6;
    timely.octets += event.bytes;
    if (timely.octets < timely.segment) continue;
    timely.octets = 0;
    on_segment(timely, event.rtt_ns);
  }
  rocefs_pcc_rate_update(static_cast<uint64_t>(timely.rate_mbps * 1e6));
  mango_pcc_result_t result{};
  result.new_window = timely.window;
  return result;
}

}  // namespace

extern "C" {
extern const mango_pcc_algo_plugin_t mango_pcc_algo_plugin = {
    .name = "timely",
    .desc = "TIMELY: a rate by the gradient of the round trip",
    .init_params = init,
    .destroy_params = destroy,
    .algo_fn = nullptr,
    .algo_event_fn = call,
    .required_metrics = ROCEFS_PCC_METRIC_EVENTS,
};
}
