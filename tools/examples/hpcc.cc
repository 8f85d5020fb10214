// HPCC (Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019, algorithm 1): windows
// by the load of the busiest link on the way, which the switches tell in each packet. They do with
// 1 in kernel/debug/rocefs/fabric/SWITCH/int/enable.
//
//   mango-ctl rdma pcc algo cross-build tools/examples/hpcc.cc mb_0
//   mango-ctl rdma pcc algo load mb_0 && mango-ctl rdma pcc apply mb_0 hpcc
#include <libmango.h>
#include <rocefs_pcc.h>

#include <algorithm>
#include <iterator>

namespace {

struct Hpcc {
  double eta;                // target of the links' utilization
  unsigned int max_stage;    // additive steps before a multiplicative one
  unsigned int base_rtt_ns;  // T; 0: the shortest round trip so far
  double wai;                // W_AI, octets
  unsigned int min_window;   // octets
  // State of the queue pair.
  double utilization;  // U, of the busiest link
  double reference;    // W^c, octets; 0 before the first event
  unsigned int stage;  // incStage
  unsigned int min_rtt_ns;
  unsigned long long update_at;  // lastUpdateSeq
  unsigned int hops, way;        // of `link`
  rocefs_pcc_hop_t link[ROCEFS_PCC_MAX_HOPS];
};

constexpr Hpcc kInitial{.eta = 0.95,
                        .max_stage = 5,
                        .base_rtt_ns = 0,
                        .wai = 80,
                        .min_window = 1024,
                        .utilization = 1,
                        .reference = 0,
                        .stage = 0,
                        .min_rtt_ns = ~0u,
                        .update_at = 0,
                        .hops = 0,
                        .way = 0,
                        .link = {}};

const mango_pcc_param_t kParameters[] = {
    REGISTER_DOUBLE_PARAM(Hpcc, eta),         REGISTER_UINT32_PARAM(Hpcc, max_stage),
    REGISTER_UINT32_PARAM(Hpcc, base_rtt_ns), REGISTER_DOUBLE_PARAM(Hpcc, wai),
    REGISTER_UINT32_PARAM(Hpcc, min_window),
};

void* init(mango_pcc_h pcc, unsigned int slot, size_t* size) {
  *size = sizeof(Hpcc);
  mango_pcc_params_register(pcc, slot, kParameters, std::size(kParameters));
  rocefs_pcc_param_range(pcc, slot, "eta", 0.5, 1);
  return new Hpcc(kInitial);
}

void destroy(void* block) {
  delete static_cast<Hpcc*>(block);
}

double base_rtt(const Hpcc& hpcc) {
  return hpcc.base_rtt_ns > 0 ? hpcc.base_rtt_ns : hpcc.min_rtt_ns;
}

// MeasureInflight: the busiest link since the event before, smoothed over a round trip.
void measure(Hpcc& hpcc, const rocefs_pcc_event_t& event) {
  double rtt = base_rtt(hpcc), busiest = 0, tau = 0;
  for (unsigned i = 0; i < event.hops; ++i) {
    const rocefs_pcc_hop_t &now = event.hop[i], &before = hpcc.link[i];
    if (now.at_ns <= before.at_ns || now.rate_bps == 0) continue;
    auto passed = static_cast<double>(now.at_ns - before.at_ns);
    double rate = static_cast<double>(now.rate_bps) / 8e9;  // octets per ns
    double sent = (now.sent_bytes - before.sent_bytes) % ROCEFS_PCC_SENT_MODULUS;
    double queue = std::min(now.queue_bytes, before.queue_bytes);
    double load = queue / (rate * rtt) + sent / passed / rate;
    if (load <= busiest) continue;
    busiest = load;
    tau = passed;
  }
  if (busiest == 0) return;
  double share = std::min(tau, rtt) / rtt;
  hpcc.utilization = (1 - share) * hpcc.utilization + share * busiest;
}

// ComputeWind.
double new_window(Hpcc& hpcc, bool update) {
  bool cut = hpcc.utilization >= hpcc.eta || hpcc.stage >= hpcc.max_stage;
  double window = cut ? hpcc.reference / (hpcc.utilization / hpcc.eta) : hpcc.reference;
  window += hpcc.wai;
  double most = static_cast<double>(rocefs_pcc_line_rate()) / 8e9 * base_rtt(hpcc);
  window = std::max(std::min(window, most), static_cast<double>(hpcc.min_window));
  if (update) {
    hpcc.stage = cut ? 0 : hpcc.stage + 1;
    hpcc.reference = window;
  }
  return window;
}

mango_pcc_result_t call(void* block, const mango_pcc_context_t* context) {
  auto& hpcc = *static_cast<Hpcc*>(block);
  mango_pcc_result_t result{};
  result.new_window = context->current_window;
  rocefs_pcc_event_t event;
  double window = 0;
  while (rocefs_pcc_event_next(&event)) {
    if (event.rtt_ns > 0) hpcc.min_rtt_ns = std::min(hpcc.min_rtt_ns, event.rtt_ns);
    if (event.type != ROCEFS_PCC_EVENT_ACK || event.hops == 0) continue;
    bool same_way = event.hops == hpcc.hops && event.way == hpcc.way;
    if (same_way) {
      // A sender begins with the window of an idle network.
      if (hpcc.reference == 0) {
        hpcc.reference = static_cast<double>(rocefs_pcc_line_rate()) / 8e9 * base_rtt(hpcc);
      }
      measure(hpcc, event);
      bool update = event.acked_bytes > hpcc.update_at;
      window = new_window(hpcc, update);
      if (update) hpcc.update_at = event.sent_bytes;
    }
    hpcc.hops = event.hops;
    hpcc.way = event.way;
    std::copy(event.hop, event.hop + event.hops, hpcc.link);
  }
  if (window == 0) return result;
  result.new_window = static_cast<unsigned int>(window);
  rocefs_pcc_rate_update(static_cast<uint64_t>(window * 8e9 / base_rtt(hpcc)));
  return result;
}

}  // namespace

extern "C" {
extern const mango_pcc_algo_plugin_t mango_pcc_algo_plugin = {
    .name = "hpcc",
    .desc = "HPCC: windows by the utilization that switches tell",
    .init_params = init,
    .destroy_params = destroy,
    .algo_fn = nullptr,
    .algo_event_fn = call,
    .required_metrics = ROCEFS_PCC_METRIC_EVENTS | ROCEFS_PCC_METRIC_INT,
};
}
