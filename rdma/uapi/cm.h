/* How the commands of librdmacm reach the engine.
 *
 * A channel of events is a connection to kernel/debug/rocefs/uapi whose first request is CM_OPEN,
 * with `hello` in it. In answer comes a socket (SOCK_SEQPACKET) which takes the place of the file
 * that librdmacm has opened: it is readable as long as an event waits. From then on the client
 * sends one struct rocefs_cm_command at a time on the connection and gets one struct
 * rocefs_cm_answer for each, at once: no command waits, GET_EVENT answers EAGAIN. The channel lasts
 * until either socket is closed; its ids go with it.
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
  uint32_t size;        /* of the octets that follow: a command as it is written to the kernel */
  uint32_t option_size; /* of those behind it: what SET_OPTION points to */
  uint64_t other;       /* MIGRATE_ID: the SO_COOKIE of the client's end of the other channel */
};

/* `take` and `take_other` are octets that stand in the channel's socket and in the other one's for
 * events that are no longer there: the client receives so many, one by one. */
struct rocefs_cm_answer {
  int32_t error; /* 0 or an errno */
  uint32_t size; /* of the octets that follow: what is to be stored at the command's response */
  uint32_t take;
  uint32_t take_other;
};

#endif
