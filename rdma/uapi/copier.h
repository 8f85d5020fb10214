/* The copier: a thread of a client's program that moves the client's memory for the engine, to and
 * from slots of a memfd that both have mapped. The engine moves that memory by itself as well, but
 * through /proc/PID/mem, a page at a time. The copier needs no rights over another process, reaches
 * no other memory than that of its own program, there none but what is registered, and if that
 * memory blocks nobody else waits there.
 *
 * The engine posts copies round the slots in order, and the copier does them in order. What the
 * copier does not take in time the engine cancels, the newest first, and moves by itself. The
 * engine believes nothing that it reads here but whether a copy has ended: a copier that lies
 * spoils the bytes of its own program.
 */
#ifndef ROCEFS_COPIER_H
#define ROCEFS_COPIER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  ROCEFS_COPIER_SLOTS = 8,
  ROCEFS_COPIER_SLOT = 128 * 1024, /* bytes; slot n begins at the end of the page + n of these */
  ROCEFS_COPIER_LEAST = 64 * 1024, /* a region of fewer bytes is not worth a thread */
};

enum rocefs_copy_state {
  ROCEFS_COPY_FREE = 0,      /* the engine may post it */
  ROCEFS_COPY_POSTED = 1,    /* the copier may take it, or the engine cancel it: compare and swap */
  ROCEFS_COPY_TAKEN = 2,     /* by the copier, which will say how it ends */
  ROCEFS_COPY_DONE = 3,      /* all bytes are moved; the engine frees it */
  ROCEFS_COPY_FAILED = 4,    /* not all; the engine frees it */
  ROCEFS_COPY_CANCELLED = 5, /* the copier frees it when its turn comes */
};

struct rocefs_copy {
  uint32_t state __attribute__((aligned(64)));
  uint32_t writes; /* not 0: from the slot to the client's memory */
  uint64_t address;
  uint32_t length; /* at most ROCEFS_COPIER_SLOT */
};

/* Fills the first page of the memfd. */
struct rocefs_copier_page {
  /* Changes when copies have been posted; a futex, of which the engine wakes the copier while
   * `bored` is not 0. When a copy has ended the copier wakes the engine as a doorbell does. */
  uint32_t posted __attribute__((aligned(64)));
  uint32_t bored;
  struct rocefs_copy copies[ROCEFS_COPIER_SLOTS];
  uint8_t reserved[4096 - (1 + ROCEFS_COPIER_SLOTS) * 64];
};

#ifdef __cplusplus
}
#endif

#endif
