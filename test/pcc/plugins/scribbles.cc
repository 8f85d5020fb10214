// Plugin that writes past its parameters.
#include "pcc/api/libmango.h"

namespace {

struct Params {
  uint32_t value;
};

void* make(mango_pcc_h, unsigned int, size_t* size) {
  static Params params{0};
  *size = sizeof params;
  return &params;
}

void call(void* params) {
  volatile uint32_t* p = &static_cast<Params*>(params)->value;
  for (int i = 1; i < 16; ++i) p[i] = 0xdeadbeef;
}

}  // namespace

extern "C" MANGO_API const mango_pcc_algo_plugin_t mango_pcc_algo_plugin = {
    .name = "scribbles",
    .desc = "Writes past its parameters.",
    .init_params = make,
    .destroy_params = nullptr,
    .algo_fn = call,
};
