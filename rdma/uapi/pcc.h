/* What a program that sets the windows of a device itself (PCC in host mode) says to the engine, on
 * a connection as uapi.h describes it.
 */
#ifndef ROCEFS_UAPI_PCC_H
#define ROCEFS_UAPI_PCC_H

#include <stdint.h>

/* It says none of rocefs_op, HELLO neither: it begins with CLAIM, and what it claimed is let go of
 * with its socket. Nobody touches its memory. */
enum rocefs_pcc_op {
  /* First, once. EBUSY: the device's windows are another's, or the card runs an algorithm. */
  ROCEFS_OP_PCC_CLAIM = 64,
  /* In answer: the memfds of the signals page and of a new control page (registers.h). From now on
   * its windows count. */
  ROCEFS_OP_PCC_RUN,
  /* They no longer do. */
  ROCEFS_OP_PCC_STOP,
  /* A line for the kernel log. It alone is not answered. */
  ROCEFS_OP_PCC_LOG,
  ROCEFS_OP_PCC_END
};

struct rocefs_pcc_claim {
  uint32_t magic;
  uint32_t version;
  char device[64];
  char comm[16];
};

struct rocefs_pcc_run {
  uint32_t pollers; /* for people */
};

struct rocefs_pcc_log {
  uint32_t level; /* mango_log_level_e: 0 error to 3 debug */
  char text[236]; /* with a NUL if it is shorter */
};

#endif
