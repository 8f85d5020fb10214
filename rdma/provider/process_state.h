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
  bool
      pins; /* the kernel has pages pinned, for another device or io_uring, and may write to them */
  bool locks;                    /* pages are locked: they were to stay */
  struct rocefs_copiers copiers; /* before the kernel was asked */
};

struct rocefs_process_state rocefs_process_state(void);

/* True if nothing but the calling thread writes to these bytes. Copiers write to regions alone, of
 * which the bytes may be in as many as `own`. */
bool rocefs_is_alone(const struct rocefs_process_state* now, const void* address, size_t length,
                     unsigned own);

#endif
