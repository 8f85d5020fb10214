// Plugin that ends its process.
#include "pcc/api/libmango.h"

#include <cstdlib>

namespace {

void call(void*) {
  std::_Exit(7);
}

}  // namespace

extern "C" MANGO_API const mango_pcc_algo_plugin_t mango_pcc_algo_plugin = {
    .name = "leaves",
    .desc = "Ends the process that it runs in.",
    .init_params = nullptr,
    .destroy_params = nullptr,
    .algo_fn = call,
};
