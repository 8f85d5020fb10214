/* Events of objects that are destroyed.
 *
 * An event names its object by address, and ibv_get_cq_event() and ibv_get_async_event() follow it.
 * So when an object is destroyed its events must leave the sockets, as they leave the kernel's
 * queues, and those that the program has read must have been acknowledged.
 */
#include <stdlib.h>
#include <sys/socket.h>

#include "rdma/provider/rocefs.h"

static void put_back(struct rocefs_context* context, uint64_t channel,
                     const struct rocefs_async_event* event) {
  struct rocefs_request request = {.op = ROCEFS_OP_PUT_BACK_EVENT,
                                   .u.put_back = {.channel = channel, .event = *event}};
  rocefs_request(context, &request, NULL);
}

uint32_t rocefs_forget_events(struct rocefs_context* context, int fd, uint64_t channel,
                              const void* object) {
  struct rocefs_async_event event = {0};
  uint32_t forgotten = 0;
  size_t kept = 0, room = 0;
  struct rocefs_async_event* others = NULL;
  /* A socket gives what comes first, so all of it is taken and the rest put back. */
  while (recv(fd, &event, sizeof event, MSG_DONTWAIT) > 0) {
    if (event.element == (uintptr_t)object) {
      ++forgotten;
      continue;
    }
    if (kept == room) {
      size_t more = room ? 2 * room : 16;
      struct rocefs_async_event* larger = realloc(others, more * sizeof *others);
      if (!larger) { /* what comes after it may stay; so little memory is left to nobody */
        put_back(context, channel, &event);
        break;
      }
      others = larger;
      room = more;
    }
    others[kept++] = event;
  }
  for (size_t i = 0; i < kept; ++i) put_back(context, channel, &others[i]);
  free(others);
  return forgotten;
}

void rocefs_await_acknowledged(pthread_mutex_t* mutex, pthread_cond_t* cond,
                               const uint32_t* completed, uint32_t expected) {
  pthread_mutex_lock(mutex);
  while (*completed != expected) pthread_cond_wait(cond, mutex);
  pthread_mutex_unlock(mutex);
}
