// Plugin that throws an exception out of its call.
#include "pcc/api/libmango.h"

#include <stdexcept>

namespace {

void call(void*) {
  throw std::runtime_error("out of ideas");
}

}  // namespace

extern "C" MANGO_API const mango_pcc_algo_plugin_t mango_pcc_algo_plugin = {
    .name = "throws",
    .desc = "Throws an exception.",
    .init_params = nullptr,
    .destroy_params = nullptr,
    .algo_fn = call,
};
