// Plugin that exhausts the stack.
#include "pcc/api/libmango.h"

namespace {

unsigned deep(unsigned n) {
  volatile unsigned here[256] = {n};
  return n == 0 ? 0 : deep(here[0] + 1) + here[0];
}

void call(void*) {
  mango_pcc_window_update(deep(1));
}

}  // namespace

extern "C" MANGO_API const mango_pcc_algo_plugin_t mango_pcc_algo_plugin = {
    .name = "recurses",
    .desc = "Calls itself until the stack is used up.",
    .init_params = nullptr,
    .destroy_params = nullptr,
    .algo_fn = call,
};
