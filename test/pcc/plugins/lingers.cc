// Plugin that passes the daemon a socket whose close blocks (SO_LINGER with unread data). It
// behaves well where it is only tried, without a socket to the daemon.
#include <sys/socket.h>

#include "pcc/api/libmango.h"
#include "test/rdma/client/lingering.h"

namespace {

void* make(mango_pcc_h, unsigned int, size_t* size) {
  *size = 0;
  int type;
  socklen_t length = sizeof type;
  if (getsockopt(3, SOL_SOCKET, SO_TYPE, &type, &length) != 0) return nullptr;
  static rocefs::test::LingeringSocket lingering;
  rocefs::test::send_descriptors(3, "{}", 2, {lingering.fd()});
  lingering.close();
  return nullptr;
}

void call(void*) {}

}  // namespace

extern "C" MANGO_API const mango_pcc_algo_plugin_t mango_pcc_algo_plugin = {
    .name = "lingers",
    .desc = "Hands the daemon a socket whose close blocks.",
    .init_params = make,
    .destroy_params = nullptr,
    .algo_fn = call,
};
