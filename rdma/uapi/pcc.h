/* Messages of a program that sets the windows of a device itself (PCC in host mode), on a
 * connection as uapi.h describes it.
 */
#ifndef ROCEFS_UAPI_PCC_H
#define ROCEFS_UAPI_PCC_H

#include <stdint.h>

/* The program sends no rocefs_op, not even HELLO: it begins with CLAIM, and its socket's end
 * releases the claim. Its memory is never accessed. */
enum rocefs_pcc_op {
  /* First, once. EBUSY: another program has the device's windows, or the card runs an algorithm. */
  ROCEFS_OP_PCC_CLAIM = 64,
  /* The answer has the memfds of the signals page and of a new control page (registers.h). From now
   * on the program's windows apply. */
  ROCEFS_OP_PCC_RUN,
  /* The program's windows no longer apply. */
  ROCEFS_OP_PCC_STOP,
  /* A line for the kernel log. The only message without an answer. */
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
  uint32_t pollers; /* informational */
};

struct rocefs_pcc_log {
  uint32_t level; /* mango_log_level_e: 0 error to 3 debug */
  char text[236]; /* with a NUL if it is shorter */
};

#endif
