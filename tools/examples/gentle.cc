// Plugin with one algorithm: a CNP reduces the window by a fraction; after some calls without a CNP
// the window grows by a packet. Build, load and apply it:
//
//   mango-ctl rdma pcc algo cross-build tools/examples/gentle.cc mb_0
//   mango-ctl rdma pcc algo load mb_0 && mango-ctl rdma pcc apply mb_0 gentle
#include <libmango.h>

#include <algorithm>
#include <iterator>

namespace {

// Parameters and state of a queue pair; each has a copy. Registered members can be set while the
// algorithm runs.
struct Gentle {
  double cut;
  unsigned int packet;
  unsigned int patience;
  unsigned int quiet;  // calls since the last CNP
};

constexpr Gentle kInitial{.cut = 0.2, .packet = 4096, .patience = 4, .quiet = 0};

const mango_pcc_param_t kParameters[] = {
    REGISTER_DOUBLE_PARAM(Gentle, cut),
    REGISTER_UINT32_PARAM(Gentle, packet),
    REGISTER_UINT32_PARAM(Gentle, patience),
};

void* init(mango_pcc_h pcc, unsigned int slot, size_t* size) {
  *size = sizeof(Gentle);
  mango_pcc_params_register(pcc, slot, kParameters, std::size(kParameters));
  return new Gentle(kInitial);
}

void destroy(void* parameters) {
  delete static_cast<Gentle*>(parameters);
}

mango_pcc_result_t call(void* parameters, const mango_pcc_context_t* context) {
  auto& gentle = *static_cast<Gentle*>(parameters);
  double window = context->current_window;
  if (context->cnp_delta > 0) {
    window -= window * std::clamp(gentle.cut, 0.0, 1.0);
    gentle.quiet = 0;
  } else if (++gentle.quiet > gentle.patience) {
    window = std::min(window + gentle.packet, 524288.0);
  }
  mango_pcc_result_t result{};
  result.new_window = std::max(static_cast<unsigned int>(window), 1024u);
  return result;
}

}  // namespace

extern "C" {
extern const mango_pcc_algo_plugin_t mango_pcc_algo_plugin = {
    .name = "gentle",
    .desc = "reduces by a fraction at a CNP, grows by packets without",
    .init_params = init,
    .destroy_params = destroy,
    .algo_fn = nullptr,
    .algo_event_fn = call,
    .required_metrics = MANGO_PCC_METRIC_CNP,
};
}
