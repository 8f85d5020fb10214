// Plugin that is slow.
#include "pcc/api/libmango.h"

#include <unistd.h>

namespace {

void call(void*) {
  usleep(300 * 1000);
}

}  // namespace

extern "C" MANGO_API const mango_pcc_algo_plugin_t mango_pcc_algo_plugin = {
    .name = "slow",
    .desc = "Takes its time.",
    .init_params = nullptr,
    .destroy_params = nullptr,
    .algo_fn = call,
};
