/* The copier: a thread of a client's program that moves the client's memory for the engine, to and
 * from slots of a memfd that both map. The engine can also move that memory itself, but through
 * /proc/PID/mem, a page at a time. The copier needs no rights over another process, reaches only
 * registered memory of its own program, and if that memory blocks only that program waits.
 *
 * The engine posts copies in the order of the slots, and the copier does them in order. Copies not
 * begun in time are cancelled by the engine, the newest first, which moves their bytes itself. The
 * engine trusts the page only to tell whether a copy has ended: a false copier spoils the bytes of
 * its own program.
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
  ROCEFS_COPIER_LEAST = 64 * 1024, /* a smaller region is not worth a thread */
};

enum rocefs_copy_state {
  ROCEFS_COPY_FREE = 0,      /* the engine may post it */
  ROCEFS_COPY_POSTED = 1,    /* the copier may take it, or the engine cancel it: compare and swap */
  ROCEFS_COPY_TAKEN = 2,     /* by the copier, which will set the result */
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
  /* Changes when copies were posted; a futex that the engine wakes while `bored` is not 0. When a
   * copy has ended the copier wakes the engine as a doorbell does. */
  uint32_t posted __attribute__((aligned(64)));
  uint32_t bored;
  struct rocefs_copy copies[ROCEFS_COPIER_SLOTS];
  uint8_t reserved[4096 - (1 + ROCEFS_COPIER_SLOTS) * 64];
};

#ifdef __cplusplus
}
#endif

#endif
