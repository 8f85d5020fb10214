// Plugin that divides by zero.
#include "pcc/api/libmango.h"

namespace {

void call(void*) {
  volatile unsigned zero = 0;
  mango_pcc_window_update(4096 / zero);
}

}  // namespace

extern "C" MANGO_API const mango_pcc_algo_plugin_t mango_pcc_algo_plugin = {
    .name = "divides",
    .desc = "Divides by zero.",
    .init_params = nullptr,
    .destroy_params = nullptr,
    .algo_fn = call,
};
