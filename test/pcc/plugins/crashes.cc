// Plugin that crashes in init_params. A sanitizer's runtime, which would report the signal and end
// the process in its own way, does not see it.
#include <signal.h>

#include "pcc/api/libmango.h"

namespace {

void* make(mango_pcc_h, unsigned int, size_t* size) {
  ::signal(SIGSEGV, SIG_DFL);
  ::raise(SIGSEGV);
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
