/* Memory that a verbs client and the engine share: limits, rings of requests and completions.
 *
 * The rings are in sealed memfds of the engine. Counters run freely modulo 2^32; a slot is the
 * counter modulo the number of entries, a power of two. A counter is stored with release order
 * after the entries that it announces, and loaded with acquire order. Neither side trusts the
 * other's values: a lying client harms only its own queue pairs, and a lying engine costs the
 * client the device.
 */
#ifndef ROCEFS_RINGS_H
#define ROCEFS_RINGS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Limits of one client. The values that the engine publishes in rocefs_device_attr never exceed
 * them. */
enum {
  ROCEFS_MAX_SGE = 8,
  ROCEFS_MAX_INLINE = 256,
  ROCEFS_MAX_COPIED = 128,
  ROCEFS_MAX_QP_WR = 16384,
  ROCEFS_MAX_SRQ_WR = 16384,
  ROCEFS_MAX_CQE = 1 << 22,
  ROCEFS_MAX_QUEUES = 4096, /* queue pairs and shared receive queues: each has a doorbell */
  ROCEFS_MAX_CQ = 4096,
  ROCEFS_MAX_MR = 65536,
  ROCEFS_MAX_MW = 65536,
  ROCEFS_MAX_PD = 4096,
  ROCEFS_MAX_XRCD = 4096,
  ROCEFS_MAX_DM = 1 << 20,        /* bytes of device memory, in whole pages */
  ROCEFS_MAX_AH = 65536,          /* counted and kept by the client itself */
  ROCEFS_MAX_MCAST_ATTACH = 4096, /* total of queue pairs and groups */
};

/* Written by the engine, read-only for clients, the same for all. */
struct rocefs_engine_page {
  uint32_t asleep; /* not 0: a doorbell needs a write to the eventfd */
};

/* The client's context: one memfd, mapped writable by both. */
struct rocefs_context_page {
  /* Counts completions of this client; a futex that the engine wakes while `waiters` is not 0. */
  uint32_t completions __attribute__((aligned(64)));
  /* Set by the engine while much of the client's posted work is outstanding: completions are
   * moderated, the engine does not wake for each, and waiting threads may sleep longer. */
  uint32_t moderated;
  uint32_t waiters __attribute__((aligned(64)));
  /* Set by the engine: the device has left, and nothing more is served. Outstanding work was
   * completed before; the engine closes its ends of the event sockets after the last event. */
  uint32_t gone __attribute__((aligned(64)));
  /* A doorbell is bit q % 64 of doorbells[q / 64], where q is the queue's doorbell number, and then
   * bit q / 64 of `rung`. To ring: set the first, then the second, both by an atomic OR; then,
   * after a full fence, check whether the engine is asleep. */
  uint64_t rung __attribute__((aligned(64)));
  uint64_t doorbells[ROCEFS_MAX_QUEUES / 64] __attribute__((aligned(64)));
};

/* Counters of a send or receive queue. A slot is released before its completion is visible. A
 * request is outstanding until the completion is polled, though: a client that posted as soon as
 * slots are released could have more completions than its queue holds. So completions of a send
 * queue carry the number of released slots. A change to RESET releases every slot. */
struct rocefs_queue {
  uint32_t posted __attribute__((aligned(64)));   /* by the client */
  uint32_t released __attribute__((aligned(64))); /* by the engine: slots that are free again */
};

struct rocefs_sge {
  uint64_t address;
  uint32_t length;
  uint32_t lkey;
};

/* Values of ibv_send_flags. */
enum rocefs_send_flags {
  ROCEFS_SEND_FENCE = 1 << 0,
  ROCEFS_SEND_SIGNALED = 1 << 1,
  ROCEFS_SEND_SOLICITED = 1 << 2,
  ROCEFS_SEND_INLINE = 1 << 3,
  /* Not in ibv_send_flags: the bytes of the entries, at most ROCEFS_MAX_COPIED, are also in
   * `copied`. */
  ROCEFS_SEND_COPIED = 1 << 16,
};

/* Address of the far end; in UD requests and queue pair attributes. */
struct rocefs_address {
  uint8_t dgid[16];
  uint8_t is_global; /* always set for RoCE */
  uint8_t sgid_index;
  uint8_t hop_limit;
  uint8_t traffic_class;
  uint8_t port;
  uint8_t sl;
  uint16_t reserved;
  uint32_t flow_label;
};

struct rocefs_send_wqe {
  uint64_t wr_id;
  uint32_t opcode; /* of rocefs_wr_opcode */
  uint32_t flags;
  uint32_t immediate; /* or the key to invalidate; bind: the window's access */
  uint32_t rkey;      /* bind: the window's new key; the one entry is the range */
  uint64_t remote_address;
  uint64_t compare_add;
  uint64_t swap;
  uint32_t remote_qpn; /* UD, as the next two members */
  uint32_t qkey;
  struct rocefs_address path;
  uint32_t num_sge; /* inline data: number of bytes */
  uint32_t srqn;    /* XRC: the far end's shared receive queue */
  uint32_t reserved[2];
  union {
    struct {
      struct rocefs_sge sges[ROCEFS_MAX_SGE];
      uint8_t copied[ROCEFS_MAX_COPIED]; /* unchanged until the slot is released */
    };
    uint8_t inline_data[ROCEFS_MAX_INLINE]; /* likewise */
  } u;
};

struct rocefs_receive_wqe {
  uint64_t wr_id;
  uint32_t num_sge;
  uint32_t reserved;
  struct rocefs_sge sges[ROCEFS_MAX_SGE];
};

/* A queue pair's memfd: the counters of both queues, then, at the offsets in the answer to its
 * creation, the slots of the send and of the receive queue. A shared receive queue's begins with
 * its one rocefs_queue. */
struct rocefs_qp_page {
  struct rocefs_queue send;
  struct rocefs_queue receive;
};

/* Values of ibv_wc_flags. */
enum rocefs_wc_flags {
  ROCEFS_WC_GRH = 1 << 0,
  ROCEFS_WC_WITH_IMM = 1 << 1,
  ROCEFS_WC_WITH_INV = 1 << 3,
};

struct rocefs_cqe {
  uint64_t wr_id;
  uint32_t status; /* ibv_wc_status */
  uint32_t opcode; /* rocefs_wc_opcode */
  uint32_t flags;
  uint32_t byte_len;
  uint32_t immediate; /* or the key that was invalidated */
  uint32_t qpn;
  uint32_t source_qpn;
  uint32_t released; /* released slots of the send queue, with this completion */
  uint64_t qp;       /* the cookie of the queue pair; 0: receive of XRC */
  uint32_t l3_type;  /* UD receive: the header before the data, 1 IPv6, 2 IPv4 */
  uint32_t reserved;
  uint64_t timestamp; /* CLOCK_MONOTONIC of its making in ns, if the CQ is `stamped` */
};

enum rocefs_armed {
  ROCEFS_ARMED_NO = 0,
  ROCEFS_ARMED_SOLICITED = 1,
  ROCEFS_ARMED_NEXT = 2,
};

/* A completion queue's memfd; its entries begin at ROCEFS_CQ_ENTRIES. Entries that are produced and
 * not yet consumed belong to the client, which removes those of a destroyed queue pair. */
struct rocefs_cq_page {
  uint32_t produced __attribute__((aligned(64))); /* by the engine */
  uint32_t consumed __attribute__((aligned(64))); /* by the client */
  /* Set by the client, which never lowers it; the engine clears it when it raises the event. */
  uint32_t armed __attribute__((aligned(64)));
};
enum { ROCEFS_CQ_ENTRIES = 4096 };

#ifdef __cplusplus
}
#endif

#endif
