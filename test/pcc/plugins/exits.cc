// Plugin that ends its process by exit(3).
#include "pcc/api/libmango.h"

#include <cstdlib>

namespace {

void call(void*) {
  std::exit(3);
}

}  // namespace

extern "C" MANGO_API const mango_pcc_algo_plugin_t mango_pcc_algo_plugin = {
    .name = "exits",
    .desc = "Ends the process that it runs in, with its handlers.",
    .init_params = nullptr,
    .destroy_params = nullptr,
    .algo_fn = call,
};
