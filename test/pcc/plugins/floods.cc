// Plugin that writes to the daemon's socket without end.
#include "pcc/api/libmango.h"

#include <sys/socket.h>

namespace {

void* make(mango_pcc_h, unsigned int, size_t* size) {
  while (send(3, "log 2 more", 10, MSG_NOSIGNAL) >= 0) {
  }
  *size = 0;
  return nullptr;
}

void call(void*) {}

}  // namespace

extern "C" MANGO_API const mango_pcc_algo_plugin_t mango_pcc_algo_plugin = {
    .name = "floods",
    .desc = "Talks to the daemon itself, and does not stop.",
    .init_params = make,
    .destroy_params = nullptr,
    .algo_fn = call,
};
