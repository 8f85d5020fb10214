// Plugin that has a thread of its own, which dies of an exception.
#include "pcc/api/libmango.h"

#include <stdexcept>
#include <thread>

namespace {

void call(void*) {
  static const bool made = [] {
    std::thread([] { throw std::runtime_error("out of ideas"); }).detach();
    return true;
  }();
  (void)made;
}

}  // namespace

extern "C" MANGO_API const mango_pcc_algo_plugin_t mango_pcc_algo_plugin = {
    .name = "threads",
    .desc = "Dies in a thread of its own.",
    .init_params = nullptr,
    .destroy_params = nullptr,
    .algo_fn = call,
};
