// Plugin whose init_params does not return.
#include "pcc/api/libmango.h"

namespace {

void* make(mango_pcc_h, unsigned int, size_t* size) {
  for (volatile bool ever = true; ever;) {
  }
  *size = 0;
  return nullptr;
}

void call(void*) {}

}  // namespace

extern "C" MANGO_API const mango_pcc_algo_plugin_t mango_pcc_algo_plugin = {
    .name = "hangs",
    .desc = "Is never made.",
    .init_params = make,
    .destroy_params = nullptr,
    .algo_fn = call,
};
