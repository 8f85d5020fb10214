// Plugin that crashes in init_params.
#include "pcc/api/libmango.h"

namespace {

void* make(mango_pcc_h, unsigned int, size_t* size) {
  *static_cast<volatile int*>(nullptr) = 1;
  *size = 0;
  return nullptr;
}

void call(void*) {}

}  // namespace

extern "C" MANGO_API const mango_pcc_algo_plugin_t mango_pcc_algo_plugin = {
    .name = "crashes",
    .desc = "Crashes while it is made.",
    .init_params = make,
    .destroy_params = nullptr,
    .algo_fn = call,
};
