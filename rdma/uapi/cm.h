/* Transport of librdmacm's commands to the engine.
 *
 * An event channel is a connection to kernel/debug/rocefs/uapi whose first request is CM_OPEN, with
 * `hello` in it. The answer carries a socket (SOCK_SEQPACKET) that replaces the file that librdmacm
 * has opened: it is readable while an event is queued. From then on the client sends one struct
 * rocefs_cm_command at a time on the connection and gets one struct rocefs_cm_answer for each, at
 * once: no command waits, GET_EVENT answers EAGAIN. Closing either socket ends the channel and its
 * ids.
 */
#ifndef ROCEFS_UAPI_CM_H
#define ROCEFS_UAPI_CM_H

#include <stdint.h>

enum {
  ROCEFS_OP_CM_OPEN = 96,
  /* Octets of the kernel's ABI (rdma_user_cm.h), header included; of an option; of an answer. */
  ROCEFS_CM_MAX_COMMAND = 512,
  ROCEFS_CM_MAX_OPTION = 512,
  ROCEFS_CM_MAX_ANSWER = 512,
};

struct rocefs_cm_command {
  uint32_t size;        /* octets of the command, which follows, as written to the kernel */
  uint32_t option_size; /* octets of SET_OPTION's option, which follow the command */
  uint64_t other;       /* MIGRATE_ID: the SO_COOKIE of the client's end of the other channel */
};

/* `take` and `take_other`: octets left in the channel's socket and in the other one's by events
 * that no longer exist: the client receives as many, one by one. */
struct rocefs_cm_answer {
  int32_t error; /* 0 or an errno */
  uint32_t size; /* octets that follow, to be stored at the command's response */
  uint32_t take;
  uint32_t take_other;
};

#endif
