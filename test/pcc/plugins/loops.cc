// Plugin that does not return.
#include "pcc/api/libmango.h"

namespace {

void call(void*) {
  for (volatile bool ever = true; ever;) {
  }
}

}  // namespace

extern "C" MANGO_API const mango_pcc_algo_plugin_t mango_pcc_algo_plugin = {
    .name = "loops",
    .desc = "Does not return.",
    .init_params = nullptr,
    .destroy_params = nullptr,
    .algo_fn = call,
};
