// Plugin that writes its own parameter: the number of its calls.
#include "pcc/api/libmango.h"

namespace {

struct Params {
  uint32_t calls;
};
constexpr mango_pcc_param_t kParameters[] = {REGISTER_UINT32_PARAM(Params, calls)};

void* make(mango_pcc_h pcc, unsigned int slot, size_t* size) {
  static Params params{0};
  *size = sizeof params;
  mango_pcc_params_register(pcc, slot, kParameters, 1);
  return &params;
}

void call(void* params) {
  ++static_cast<Params*>(params)->calls;
}

}  // namespace

extern "C" MANGO_API const mango_pcc_algo_plugin_t mango_pcc_algo_plugin = {
    .name = "counts",
    .desc = "Counts its calls.",
    .init_params = make,
    .destroy_params = nullptr,
    .algo_fn = call,
};
