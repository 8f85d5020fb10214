// Plugin that crashes when it is unloaded. It behaves well where it is only tried, without a socket
// to the daemon.
#include "pcc/api/libmango.h"

#include <sys/socket.h>

namespace {

void* make(mango_pcc_h, unsigned int, size_t* size) {
  static int nothing;
  *size = sizeof nothing;
  return &nothing;
}

void drop(void*) {
  int type;
  socklen_t length = sizeof type;
  if (getsockopt(3, SOL_SOCKET, SO_TYPE, &type, &length) == 0)
    *static_cast<volatile int*>(nullptr) = 1;
}

void call(void*) {}

}  // namespace

extern "C" MANGO_API const mango_pcc_algo_plugin_t mango_pcc_algo_plugin = {
    .name = "departs",
    .desc = "Crashes at its end.",
    .init_params = make,
    .destroy_params = drop,
    .algo_fn = call,
};
