/* State of this process: whether others may write to its memory at this moment. */
#ifndef ROCEFS_PROVIDER_PROCESS_STATE_H
#define ROCEFS_PROVIDER_PROCESS_STATE_H

#include <stdbool.h>
#include <stddef.h>

#include "rdma/provider/regions.h"

/* From /proc/self/status. */
struct rocefs_process_state {
  bool known; /* the others are valid */
  unsigned long threads;
  bool pins;  /* pages, for another device or io_uring: the kernel may write to them */
  bool locks; /* pages, which were to stay */
  /* Before the kernel was asked. */
  struct rocefs_copiers copiers;
};

struct rocefs_process_state rocefs_process_state(void);

/* True if nothing but the calling thread writes to these bytes. Copiers write to regions alone, of
 * which the bytes may be in as many as `own`. */
bool rocefs_is_alone(const struct rocefs_process_state* now, const void* address, size_t length,
                     unsigned own);

#endif
