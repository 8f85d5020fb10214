// Plugin that takes over the process and gives false answers.
#include "pcc/api/libmango.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <thread>

namespace {

constexpr int kDaemon = 3;

void say(int daemon, const std::string& text) {
  (void)!write(daemon, text.data(), text.size());
}

// Answers of the expected kind, but for another order.
void answer(int daemon) {
  say(daemon, "1 algorithms\nalgorithm 3 lies x a 1");
  char order[1024];
  for (ssize_t size; (size = read(daemon, order, sizeof order - 1)) > 0;) {
    order[size] = 0;
    char verb[32];
    unsigned long long id;
    if (std::sscanf(order, "%llu %31s", &id, verb) != 2) return;
    std::string name = verb, number = std::to_string(id);
    if (name == "echo") say(daemon, number + " echoed something");
    if (name == "update") say(daemon, number + " parameters 4 other x a 1");
    if (name == "round") say(daemon, number + " due 5");
  }
}

// Replaces the inherited socket: what the process itself sends is lost.
void* make(mango_pcc_h, unsigned int, size_t* size) {
  int ends[2], daemon = dup(kDaemon);
  if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0) dup2(ends[0], kDaemon);
  std::thread(answer, daemon).detach();
  *size = 0;
  return nullptr;
}

void call(void*) {}

}  // namespace

extern "C" MANGO_API const mango_pcc_algo_plugin_t mango_pcc_algo_plugin = {
    .name = "lies",
    .desc = "Takes the place of mango-pccd, and gives false answers.",
    .init_params = make,
    .destroy_params = nullptr,
    .algo_fn = call,
};
