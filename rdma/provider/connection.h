/* Socket to the engine. */
#ifndef ROCEFS_PROVIDER_CONNECTION_H
#define ROCEFS_PROVIDER_CONNECTION_H

#include <pthread.h>
#include <stdint.h>
#include <sys/types.h>

#include "rdma/uapi/uapi.h"

struct rocefs_connection {
  int fd;
  pid_t owner;           /* process that connected; its children must not use the socket */
  uint32_t broken;       /* closed by the engine, or not trusted any more */
  pthread_mutex_t mutex; /* one request at a time */
};

/* Connects to the engine whose tree is at `root`, and lets it access the memory of this process.
 * Returns an errno, with the reason in `why`. */
int rocefs_connect(struct rocefs_connection* connection, const char* root, char* why, size_t size);

/* Sends a request, with the descriptor `passed` unless it is -1, and waits for the answer. A
 * refusal by the engine is in the answer's error; EIO: no answer, now or later. `received` gets
 * `count` descriptors, close-on-exec; -1 for missing ones, as when this process is at its limit. */
int rocefs_exchange(struct rocefs_connection* connection, const struct rocefs_request* request,
                    int passed, struct rocefs_answer* answer, int* received, unsigned count);

/* Checks, without waiting, that the engine still holds its end. */
void rocefs_check_alive(struct rocefs_connection* connection);

void rocefs_disconnect(struct rocefs_connection* connection);

#endif
