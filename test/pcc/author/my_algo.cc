// Plugin as its author writes it: parameters by the macros of libmango.h, allocated and freed here,
// and windows by the functions that read a queue pair's signals.
#include <libmango.h>

#include <algorithm>

namespace {

constexpr unsigned kMinWindow = 1024;

struct Knobs {
  unsigned alpha = 100;  // octets more after a period without a CNP
  double beta = 0.5;     // what is kept of a window at a CNP
};

const mango_pcc_param_t kKnobs[] = {
    REGISTER_UINT32_PARAM(Knobs, alpha),
    REGISTER_DOUBLE_PARAM(Knobs, beta),
};

void* make_knobs(mango_pcc_h pcc, unsigned slot, size_t* size) {
  auto* knobs = new Knobs;
  *size = sizeof *knobs;
  mango_pcc_params_register(pcc, slot, kKnobs, sizeof kKnobs / sizeof *kKnobs);
  return knobs;
}

void drop_knobs(void* knobs) {
  delete static_cast<Knobs*>(knobs);
}

void steer(void* block) {
  const auto& knobs = *static_cast<const Knobs*>(block);
  unsigned window = mango_pcc_window_current();
  bool congested = mango_pcc_event_get_val(MANGO_PCC_EVENT_CNP) > 0;
  window = congested ? static_cast<unsigned>(window * knobs.beta) : window + knobs.alpha;
  mango_pcc_window_update(std::max(window, kMinWindow));
}

}  // namespace

extern "C" {
extern const mango_pcc_algo_plugin_t mango_pcc_algo_plugin = {
    .name = "my_custom_algo",
    .desc = "Half a window at a CNP, else a little more",
    .init_params = make_knobs,
    .destroy_params = drop_knobs,
    .algo_fn = steer,
};
}
