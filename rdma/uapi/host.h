/* How `rocefs host` makes machines around the NICs of a mount, and joins them.
 *
 * A machine ("host") is a network, a mount and a UTS namespace. A program makes them with its own
 * rights, makes the interfaces in them, and hands the descriptors to the engine, which holds them
 * as long as the mount lives. An interface is a TAP device: what the host's kernel transmits is
 * read from its descriptor and becomes an Ethernet frame on the emulated port's cable.
 *
 * The program connects to kernel/debug/rocefs/uapi as a verbs client does (uapi.h). Its first
 * request is HOST_OPEN, answered by a struct rocefs_answer. From then on it sends one struct
 * rocefs_host_request at a time, with at most one descriptor, and gets one struct
 * rocefs_host_answer for each.
 *
 * All hosts of a mount are made by the program that first enters one: its ENTER is answered by
 * MAKE. It makes every host listed in kernel/debug/rocefs/hosts whose state is not "running", the
 * wanted one first: a PLUG for each interface, a WATCH, two PARK, a NAMESPACE for each, then
 * STARTED; and it ends with MADE. After ATTACH a program does the same for one host. Meanwhile
 * other programs wait for the answer to their ENTER until their host has started. If the maker's
 * connection ends before MADE, the next program that waits or enters becomes the maker of what is
 * missing, also where its own host runs already.
 */
#ifndef ROCEFS_UAPI_HOST_H
#define ROCEFS_UAPI_HOST_H

#include <stdint.h>

enum {
  ROCEFS_OP_HOST_OPEN = 128,
  ROCEFS_HOST_NAME = 64, /* octets of a name, with its end */
  ROCEFS_HOST_AS_IT_IS = 1,
  ROCEFS_HOST_OF_ANOTHER = 1 << 16, /* in `present`: made by another user than who enters */
};

enum rocefs_host_op {
  /* Answered by RUNNING, with descriptors of the host's namespaces, or by MAKE. With `number`
   * ROCEFS_HOST_AS_IT_IS the program makes no hosts if this one runs. */
  ROCEFS_HOST_ENTER = 1,
  /* The program becomes the maker of this host, in namespaces of its choice; answered by MAKE. The
   * host stays as it is until STARTED. EBUSY while hosts are made, and if another host is in the
   * network namespace whose descriptor comes along, if one does. */
  ROCEFS_HOST_ATTACH,
  /* Lets go what was handed over after ATTACH. ENOENT if the host is not attached. */
  ROCEFS_HOST_DETACH,
  /* The others are the maker's. With a TAP device (IFF_TAP, IFF_NO_PI, IFF_VNET_HDR) as interface
   * `number` of the host, counted from 0 in the order of its file `interfaces`. */
  ROCEFS_HOST_PLUG,
  /* With a socket of NETLINK_ROUTE that was opened in the host's network namespace. */
  ROCEFS_HOST_WATCH,
  /* With a socket of NETLINK_ROUTE, from which nobody else reads: number 0: opened in the host's
   * network namespace; number 1: in another one, where its interfaces wait while their device has
   * no driver. */
  ROCEFS_HOST_PARK,
  /* With the namespace `number`, of enum rocefs_host_namespace. */
  ROCEFS_HOST_NAMESPACE,
  /* EINVAL if an interface, a socket or a namespace is missing; EBUSY if another host is in that
   * network namespace. */
  ROCEFS_HOST_STARTED,
  /* The name of the host is not looked at. */
  ROCEFS_HOST_MADE,
};

/* In the order in which a program joins them; it may be in USER already. */
enum rocefs_host_namespace {
  ROCEFS_HOST_USER,
  ROCEFS_HOST_MNT,
  ROCEFS_HOST_UTS,
  ROCEFS_HOST_NET,
  ROCEFS_HOST_NAMESPACES,
};

enum rocefs_host_state {
  ROCEFS_HOST_DONE,
  ROCEFS_HOST_RUNNING,
  ROCEFS_HOST_MAKE,
};

struct rocefs_host_request {
  uint32_t op;
  uint32_t number;
  char host[ROCEFS_HOST_NAME];
};

struct rocefs_host_answer {
  int32_t error;    /* 0 or an errno: no change was made */
  uint32_t state;   /* of rocefs_host_state */
  uint32_t present; /* RUNNING: a bit for each namespace of which a descriptor comes along */
  char reason[116]; /* error: for people */
};

#endif
