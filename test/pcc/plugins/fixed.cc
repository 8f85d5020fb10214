// Plugin that sets the window of its parameter.
#include "pcc/api/libmango.h"

namespace {

struct Params {
  uint32_t window;
  double factor;
};

void* make(mango_pcc_h pcc, unsigned int slot, size_t* size) {
  static const mango_pcc_param_t kParams[] = {REGISTER_UINT32_PARAM(Params, window),
                                              REGISTER_DOUBLE_PARAM(Params, factor)};
  if (mango_pcc_params_register(pcc, slot, kParams, 2) != MANGO_STATUS_OK) return nullptr;
  mango_pcc_log(MANGO_LOG_LEVEL_INFO, "fixed is made in slot %u", slot);
  *size = sizeof(Params);
  return new Params{4096, 1};
}

void destroy(void* params) {
  delete static_cast<Params*>(params);
}

void call(void* params) {
  const auto* p = static_cast<Params*>(params);
  mango_pcc_window_update(static_cast<unsigned>(p->window * p->factor));
}

}  // namespace

extern "C" MANGO_API const mango_pcc_algo_plugin_t mango_pcc_algo_plugin = {
    .name = "fixed",
    .desc = "a window that stays as it is",
    .init_params = make,
    .destroy_params = destroy,
    .algo_fn = call,
};
