// Plugin that writes to the daemon's socket.
#include "pcc/api/libmango.h"

#include <unistd.h>

namespace {

void* make(mango_pcc_h, unsigned int, size_t* size) {
  (void)!write(3, "nonsense", 8);
  *size = 0;
  return nullptr;
}

void call(void*) {}

}  // namespace

extern "C" MANGO_API const mango_pcc_algo_plugin_t mango_pcc_algo_plugin = {
    .name = "babbles",
    .desc = "Talks to the daemon itself.",
    .init_params = make,
    .destroy_params = nullptr,
    .algo_fn = call,
};
