// Plugin that aborts.
#include "pcc/api/libmango.h"

#include <cstdlib>

namespace {

void call(void*) {
  std::abort();
}

}  // namespace

extern "C" MANGO_API const mango_pcc_algo_plugin_t mango_pcc_algo_plugin = {
    .name = "aborts",
    .desc = "Aborts.",
    .init_params = nullptr,
    .destroy_params = nullptr,
    .algo_fn = call,
};
