// Swift (Kumar et al., "Swift: Delay is Simple and Effective for Congestion Control in the
// Datacenter", SIGCOMM 2020, algorithm 1 and section 3.5): a window that keeps the round trip near
// a target. Of the paper's two windows it has that of the fabric: hosts here have no queue of their
// own. The target does not grow with the number of hops.
//
//   mango-ctl rdma pcc algo cross-build tools/examples/swift.cc mb_0
//   mango-ctl rdma pcc algo load mb_0 && mango-ctl rdma pcc apply mb_0 swift
#include <libmango.h>
#include <rocefs_pcc.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace {

struct Swift {
  double ai;                // packets a round trip
  double beta;              // decrease for a delay above the target
  double max_mdf;           // largest decrease at once
  unsigned int target_ns;   // base target
  unsigned int range_ns;    // fs_range: what small windows add to it
  double fs_min, fs_max;    // windows of the scaling, packets
  unsigned int packet;      // octets
  double min_cwnd;          // packets; below 1 by the rate
  double max_cwnd;          // packets; also where min_cwnd is larger
  unsigned int retx_reset;  // time-outs in a row after which the window is min_cwnd
  // State of the queue pair.
  double cwnd;  // packets; 0 before the first event
  double srtt_ns;
  unsigned int timeouts;
  unsigned long long decreased_at;  // ns
};

constexpr Swift kInitial{.ai = 1,
                         .beta = 0.8,
                         .max_mdf = 0.5,
                         .target_ns = 25000,
                         .range_ns = 20000,
                         .fs_min = 0.1,
                         .fs_max = 100,
                         .packet = 1024,
                         .min_cwnd = 0.01,
                         .max_cwnd = 512,
                         .retx_reset = 5,
                         .cwnd = 0,
                         .srtt_ns = 0,
                         .timeouts = 0,
                         .decreased_at = 0};

const mango_pcc_param_t kParameters[] = {
    REGISTER_DOUBLE_PARAM(Swift, ai),        REGISTER_DOUBLE_PARAM(Swift, beta),
    REGISTER_DOUBLE_PARAM(Swift, max_mdf),   REGISTER_UINT32_PARAM(Swift, target_ns),
    REGISTER_UINT32_PARAM(Swift, range_ns),  REGISTER_DOUBLE_PARAM(Swift, fs_min),
    REGISTER_DOUBLE_PARAM(Swift, fs_max),    REGISTER_UINT32_PARAM(Swift, packet),
    REGISTER_DOUBLE_PARAM(Swift, min_cwnd),  REGISTER_DOUBLE_PARAM(Swift, max_cwnd),
    REGISTER_UINT32_PARAM(Swift, retx_reset)};

void* init(mango_pcc_h pcc, unsigned int slot, size_t* size) {
  *size = sizeof(Swift);
  mango_pcc_params_register(pcc, slot, kParameters, std::size(kParameters));
  rocefs_pcc_param_range(pcc, slot, "ai", 0, 1000000);
  rocefs_pcc_param_range(pcc, slot, "beta", 0, 1);
  rocefs_pcc_param_range(pcc, slot, "max_mdf", 0, 1);
  rocefs_pcc_param_range(pcc, slot, "packet", 256, 4096);
  rocefs_pcc_param_range(pcc, slot, "fs_min", 0.001, 1000000);
  rocefs_pcc_param_range(pcc, slot, "fs_max", 0.001, 1000000);
  // A million packets of 4096 octets is about the largest window.
  rocefs_pcc_param_range(pcc, slot, "min_cwnd", 0.001, 1000000);
  rocefs_pcc_param_range(pcc, slot, "max_cwnd", 0.001, 1000000);
  return new Swift(kInitial);
}

void destroy(void* block) {
  delete static_cast<Swift*>(block);
}

// Flow-based scaling: many flows at one port have small windows, and more of them queue.
double target(const Swift& swift) {
  double low = 1 / std::sqrt(swift.fs_min), high = 1 / std::sqrt(swift.fs_max);
  if (swift.range_ns == 0 || low <= high) return swift.target_ns;
  double alpha = swift.range_ns / (low - high);
  double scaled = alpha / std::sqrt(swift.cwnd) - alpha * high;
  return swift.target_ns + std::clamp(scaled, 0.0, static_cast<double>(swift.range_ns));
}

// A decrease once in a round trip at most.
bool may_decrease(const Swift& swift, const rocefs_pcc_event_t& event) {
  return static_cast<double>(event.at_ns - swift.decreased_at) >= swift.srtt_ns;
}

void on_ack(Swift& swift, const rocefs_pcc_event_t& event) {
  swift.timeouts = 0;
  double delay = event.rtt_ns, acked = static_cast<double>(event.bytes) / swift.packet;
  if (delay == 0) return;
  swift.srtt_ns = swift.srtt_ns == 0 ? delay : swift.srtt_ns + (delay - swift.srtt_ns) / 8;
  double aim = target(swift);
  if (delay < aim) {
    swift.cwnd += swift.cwnd >= 1 ? swift.ai / swift.cwnd * acked : swift.ai * acked;
  } else if (may_decrease(swift, event)) {
    swift.cwnd *= std::max(1 - swift.beta * (delay - aim) / delay, 1 - swift.max_mdf);
  }
}

void on_loss(Swift& swift, const rocefs_pcc_event_t& event) {
  bool timeout = event.type == ROCEFS_PCC_EVENT_TIMEOUT;
  swift.timeouts = timeout ? swift.timeouts + 1 : 0;
  if (timeout && swift.timeouts >= swift.retx_reset) {
    swift.cwnd = std::min(swift.min_cwnd, swift.max_cwnd);
  } else if (may_decrease(swift, event)) {
    swift.cwnd *= 1 - swift.max_mdf;
  }
}

mango_pcc_result_t call(void* block, const mango_pcc_context_t* context) {
  auto& swift = *static_cast<Swift*>(block);
  if (swift.cwnd == 0) {
    swift.cwnd = std::min<double>(context->current_window, 65536) / swift.packet;
  }
  rocefs_pcc_event_t event;
  while (rocefs_pcc_event_next(&event)) {
    double before = swift.cwnd;
    event.type == ROCEFS_PCC_EVENT_ACK ? on_ack(swift, event) : on_loss(swift, event);
    swift.cwnd = std::min(std::max(swift.cwnd, swift.min_cwnd), swift.max_cwnd);
    if (swift.cwnd < before) swift.decreased_at = event.at_ns;
  }
  // Less than a packet in a round trip is a packet now and then.
  double rate = swift.cwnd * swift.packet * 8e9 / std::max(swift.srtt_ns, 1.0);
  rocefs_pcc_rate_update(swift.cwnd < 1 && swift.srtt_ns > 0 ? static_cast<uint64_t>(rate) : 0);
  mango_pcc_result_t result{};
  result.new_window = static_cast<unsigned int>(std::max(swift.cwnd, 1.0) * swift.packet);
  return result;
}

}  // namespace

extern "C" {
extern const mango_pcc_algo_plugin_t mango_pcc_algo_plugin = {
    .name = "swift",
    .desc = "Swift: a window that keeps the round trip near a target",
    .init_params = init,
    .destroy_params = destroy,
    .algo_fn = nullptr,
    .algo_event_fn = call,
    .required_metrics = ROCEFS_PCC_METRIC_EVENTS,
};
}
