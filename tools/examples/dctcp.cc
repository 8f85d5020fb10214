// DCTCP's law (Alizadeh et al., "Data Center TCP", SIGCOMM 2010) on CNPs: a window that is cut once
// in a window of data, by the smoothed share of marked packets. Each marked packet makes a CNP
// where roce_np/min_time_between_cnps of the receiver is 0.
//
//   mango-ctl rdma pcc algo cross-build tools/examples/dctcp.cc mb_0
//   mango-ctl rdma pcc algo load mb_0 && mango-ctl rdma pcc apply mb_0 dctcp
#include <libmango.h>
#include <rocefs_pcc.h>

#include <algorithm>
#include <iterator>

namespace {

struct Dctcp {
  double g;                             // weight of the newest share
  unsigned int packet;                  // octets that a window of data without a mark adds
  unsigned int min_window, max_window;  // the latter also where the first is larger
  // State of the queue pair.
  double alpha;  // smoothed share of marked packets
  double window;
  unsigned long long acked;    // packets since the last update, of any length
  unsigned long long marked;   // CNPs since then
  unsigned long long ends_at;  // acknowledged octets at which this window of data ends
};

constexpr Dctcp kInitial{.g = 0.0625,
                         .packet = 1024,
                         .min_window = 2048,
                         .max_window = 524288,
                         .alpha = 1,
                         .window = 0,
                         .acked = 0,
                         .marked = 0,
                         .ends_at = 0};

const mango_pcc_param_t kParameters[] = {
    REGISTER_DOUBLE_PARAM(Dctcp, g),
    REGISTER_UINT32_PARAM(Dctcp, packet),
    REGISTER_UINT32_PARAM(Dctcp, min_window),
    REGISTER_UINT32_PARAM(Dctcp, max_window),
};

void* init(mango_pcc_h pcc, unsigned int slot, size_t* size) {
  *size = sizeof(Dctcp);
  mango_pcc_params_register(pcc, slot, kParameters, std::size(kParameters));
  rocefs_pcc_param_range(pcc, slot, "g", 0, 1);
  rocefs_pcc_param_range(pcc, slot, "packet", 256, 4096);
  rocefs_pcc_param_range(pcc, slot, "min_window", 256, 1u << 30);
  rocefs_pcc_param_range(pcc, slot, "max_window", 256, 1u << 30);
  return new Dctcp(kInitial);
}

void destroy(void* block) {
  delete static_cast<Dctcp*>(block);
}

// A window of data is acknowledged: about a round trip.
void on_window(Dctcp& dctcp) {
  double packets = std::max(static_cast<double>(dctcp.acked), 1.0);
  double share = std::min(static_cast<double>(dctcp.marked) / packets, 1.0);
  dctcp.alpha = (1 - dctcp.g) * dctcp.alpha + dctcp.g * share;
  if (dctcp.marked > 0) {
    dctcp.window *= 1 - dctcp.alpha / 2;
  } else {
    dctcp.window += dctcp.packet;
  }
  dctcp.acked = dctcp.marked = 0;
}

mango_pcc_result_t call(void* block, const mango_pcc_context_t* context) {
  auto& dctcp = *static_cast<Dctcp*>(block);
  if (dctcp.window == 0) dctcp.window = std::min<double>(context->current_window, 65536);
  dctcp.marked += context->cnp_delta;
  rocefs_pcc_event_t event;
  while (rocefs_pcc_event_next(&event)) {
    if (event.bytes > 0) ++dctcp.acked;  // the receiver acknowledges each packet
    if (event.acked_bytes < dctcp.ends_at) continue;
    on_window(dctcp);
    dctcp.ends_at = event.sent_bytes;
  }
  dctcp.window = std::min(std::max<double>(dctcp.window, dctcp.min_window),
                          static_cast<double>(dctcp.max_window));
  mango_pcc_result_t result{};
  result.new_window = static_cast<unsigned int>(dctcp.window);
  return result;
}

}  // namespace

extern "C" {
extern const mango_pcc_algo_plugin_t mango_pcc_algo_plugin = {
    .name = "dctcp",
    .desc = "DCTCP's law on CNPs: cuts by the share of marked packets",
    .init_params = init,
    .destroy_params = destroy,
    .algo_fn = nullptr,
    .algo_event_fn = call,
    .required_metrics = ROCEFS_PCC_METRIC_EVENTS | MANGO_PCC_METRIC_CNP,
};
}
