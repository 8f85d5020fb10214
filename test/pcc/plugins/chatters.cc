// Plugin that logs at every call.
#include "pcc/api/libmango.h"

namespace {

void call(void*) {
  mango_pcc_log(MANGO_LOG_LEVEL_INFO, "chatter");
}

}  // namespace

extern "C" MANGO_API const mango_pcc_algo_plugin_t mango_pcc_algo_plugin = {
    .name = "chatters",
    .desc = "Logs at every call.",
    .init_params = nullptr,
    .destroy_params = nullptr,
    .algo_fn = call,
};
