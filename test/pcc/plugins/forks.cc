// Plugin that leaves children behind when its process ends: one in the process group, and some that
// have left it and write to the daemon's socket until it is closed.
#include "pcc/api/libmango.h"

#include <sys/socket.h>
#include <unistd.h>

namespace {

constexpr char kLine[] = "log 3 nobody is here";

[[noreturn]] void talk_after(pid_t parent) {
  while (getppid() == parent) usleep(100);
  while (send(3, kLine, sizeof kLine - 1, MSG_NOSIGNAL) >= 0) {
  }
  _exit(0);
}

void* make(mango_pcc_h, unsigned int, size_t* size) {
  if (fork() == 0) {
    for (;;) pause();
  }
  const pid_t self = getpid();
  for (int i = 0; i < 4; ++i) {
    if (fork() == 0) {
      setsid();
      talk_after(self);
    }
  }
  *size = 0;
  return nullptr;
}

void call(void*) {}

}  // namespace

extern "C" MANGO_API const mango_pcc_algo_plugin_t mango_pcc_algo_plugin = {
    .name = "forks",
    .desc = "Leaves children behind.",
    .init_params = make,
    .destroy_params = nullptr,
    .algo_fn = call,
};
