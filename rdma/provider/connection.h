/* The socket to the engine. */
#ifndef ROCEFS_PROVIDER_CONNECTION_H
#define ROCEFS_PROVIDER_CONNECTION_H

#include <pthread.h>
#include <stdint.h>
#include <sys/types.h>

#include "rdma/uapi/uapi.h"

struct rocefs_connection {
  int fd;
  pid_t owner;           /* the process that connected; its children must not use it */
  uint32_t broken;       /* the engine has closed it, or it cannot be trusted any more */
  pthread_mutex_t mutex; /* one request at a time */
};

/* Connects to the engine whose tree is at `root` and lets it access the memory of this process. An
 * errno, and the reason in `why`. */
int rocefs_connect(struct rocefs_connection* connection, const char* root, char* why, size_t size);

/* Sends a request, with the descriptor `passed` if it is not -1, and waits for its answer. What the
 * engine refuses is the answer's error; EIO: there is no answer, now or ever. `received` gets
 * `count` descriptors, close-on-exec; -1 for those that did not come, as when this process is at
 * its limit. */
int rocefs_exchange(struct rocefs_connection* connection, const struct rocefs_request* request,
                    int passed, struct rocefs_answer* answer, int* received, unsigned count);

/* Looks, without waiting, whether the engine still holds its end. */
void rocefs_check_alive(struct rocefs_connection* connection);

void rocefs_disconnect(struct rocefs_connection* connection);

#endif
