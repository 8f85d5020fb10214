/* The contract between a verbs client and the engine.
 *
 * A client connects to kernel/debug/rocefs/uapi (SOCK_SEQPACKET) with SO_PASSCRED set. The engine
 * greets it with a struct rocefs_greeting; the credentials of that message name the process that
 * moves the client's memory by /proc/PID/mem, which it opens at ROCEFS_OP_HELLO: the client allows
 * that before (PR_SET_PTRACER). The greeting carries a socket that replaces the connected one,
 * which would hold the mount (net/unix/af_unix.c) and is closed. From then on the client sends one
 * struct rocefs_request at a time and gets one struct rocefs_answer for each. Both may carry
 * descriptors (SCM_RIGHTS).
 *
 * Work requests and completions pass through rings in sealed memfds of the engine. Counters run
 * freely modulo 2^32; a slot is the counter modulo the number of entries, a power of two. A counter
 * is stored with release order after the entries that it announces, and loaded with acquire order.
 * Neither side trusts the other's values: a lying client harms only its own queue pairs, and a
 * lying engine costs the client the device.
 *
 * Numbers are in host order, and so are immediates. Enumerations have the values of
 * <infiniband/verbs.h>.
 */
#ifndef ROCEFS_UAPI_H
#define ROCEFS_UAPI_H

#include <stdint.h>

#include "rdma/uapi/operations.h"
#include "rdma/uapi/pcc.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  ROCEFS_UAPI_MAGIC = 0x52434653,
  ROCEFS_UAPI_VERSION = 4,
  ROCEFS_UAPI_REFUSAL = 0x52434652, /* in a greeting's magic: its version is an errno */
};

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
  ROCEFS_MAX_AH = 65536,          /* counted and kept by the client itself */
  ROCEFS_MAX_MCAST_ATTACH = 4096, /* total of queue pairs and groups */
};

/* ---- Shared memory ---- */

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
  uint32_t reserved[3];
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
  uint64_t qp;       /* the cookie of the queue pair */
  uint32_t l3_type;  /* UD receive: the header before the data, 1 IPv6, 2 IPv4 */
  uint32_t reserved[3];
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

/* ---- Messages ---- */

struct rocefs_greeting {
  uint32_t magic;
  uint32_t version;
};

enum rocefs_op {
  /* First, once. Descriptors: the socket for asynchronous events (the engine's end). The answer has
   * the engine page, the context page, and the eventfd. */
  ROCEFS_OP_HELLO,
  ROCEFS_OP_QUERY_PORT,
  ROCEFS_OP_CHECK_ADDRESS,
  ROCEFS_OP_ALLOC_PD,
  ROCEFS_OP_DEALLOC_PD,
  ROCEFS_OP_REG_MR,
  ROCEFS_OP_DEREG_MR,
  /* The answer has its memfd. */
  ROCEFS_OP_CREATE_CQ,
  /* After the answer to this, DESTROY_SRQ or DESTROY_QP the object has no completion or event. */
  ROCEFS_OP_DESTROY_CQ,
  /* The answers to both have the memfd. */
  ROCEFS_OP_CREATE_SRQ,
  ROCEFS_OP_MODIFY_SRQ,
  ROCEFS_OP_QUERY_SRQ,
  ROCEFS_OP_DESTROY_SRQ,
  ROCEFS_OP_CREATE_QP,
  ROCEFS_OP_MODIFY_QP,
  ROCEFS_OP_QUERY_QP,
  ROCEFS_OP_DESTROY_QP,
  /* Descriptor: the socket for events of the CQs that will name this channel (the engine's end).
   * Only the engine has it, so that the engine's death ends a wait for an event; the engine closes
   * it when the other end is closed. */
  ROCEFS_OP_CREATE_CHANNEL,
  /* Sends an event again that the client took off a socket; not counted as sent. */
  ROCEFS_OP_PUT_BACK_EVENT,
  /* The answer has its new keys. On failure the region is unchanged. */
  ROCEFS_OP_REREG_MR,
  /* The answer has a new memfd with the entries produced and not consumed; the old one is unused
   * from now on. EINVAL: they do not fit. */
  ROCEFS_OP_RESIZE_CQ,
  ROCEFS_OP_ALLOC_MW,
  ROCEFS_OP_DEALLOC_MW,
  ROCEFS_OP_ATTACH_MCAST,
  ROCEFS_OP_DETACH_MCAST,
  /* Like REG_MR, but the region's bytes are those of a new memfd in the answer, of whole pages,
   * zeroed: the engine accesses them itself. The client maps it at the region's address.
   */
  ROCEFS_OP_SHARE_MR,
  /* Once. The answer has the memfd that a copier of the client serves (rdma/uapi/copier.h). */
  ROCEFS_OP_CREATE_COPIER,
  ROCEFS_OP_COUNT
};

/* Messages on the event sockets (SOCK_SEQPACKET pairs made by the client): for a completion the
 * CQ's cookie, eight bytes, as ibv_get_cq_event() reads it; for others the structure that
 * ibv_get_async_event() reads. */
struct rocefs_async_event {
  uint64_t element; /* the cookie of the QP, SRQ or CQ; the port; 0 */
  uint32_t type;    /* ibv_event_type */
  uint32_t reserved;
};

struct rocefs_hello {
  uint32_t magic;
  uint32_t version;
  char device[64];
  char comm[16];
  uint64_t probe; /* an address that holds ROCEFS_UAPI_MAGIC, to test access */
};

struct rocefs_device_attr {
  uint64_t node_guid;
  uint64_t max_mr_size;
  uint32_t vendor_id;
  uint32_t vendor_part_id;
  uint32_t hw_ver;
  uint32_t max_qp;
  uint32_t max_qp_wr;
  uint32_t max_sge;
  uint32_t max_inline;
  uint32_t max_cq;
  uint32_t max_cqe;
  uint32_t max_mr;
  uint32_t max_pd;
  uint32_t max_srq;
  uint32_t max_srq_wr;
  uint32_t max_rd_atomic;
  uint32_t max_ah;
  uint32_t max_mw;
  uint32_t max_mcast_attach;
  uint32_t ports;
  char fw_ver[64];
};

struct rocefs_port_attr {
  uint32_t state;      /* ibv_port_state */
  uint32_t phys_state; /* 3 disabled, 5 link up */
  uint32_t max_mtu;    /* ibv_mtu */
  uint32_t active_mtu;
  uint32_t max_message;
  uint32_t gid_table_len;
  uint32_t pkey_table_len;
  uint32_t capabilities;
  uint32_t active_speed; /* as ibv_port_attr has them */
  uint32_t active_width;
  uint32_t lid, sm_lid;
};

struct rocefs_reg_mr {
  uint32_t pd;
  uint32_t access; /* ibv_access_flags */
  uint64_t address;
  uint64_t length;
  uint64_t iova; /* address of the first byte in requests */
};

/* Values of ibv_rereg_mr_flags. */
enum rocefs_rereg_flags {
  ROCEFS_REREG_TRANSLATION = 1 << 0,
  ROCEFS_REREG_PD = 1 << 1,
  ROCEFS_REREG_ACCESS = 1 << 2,
};

struct rocefs_rereg_mr {
  uint32_t handle;
  uint32_t flags; /* members below that change */
  struct rocefs_reg_mr mr;
};

struct rocefs_alloc_mw {
  uint32_t pd;
  uint32_t type; /* ibv_mw_type: 1, or 2 (2B) */
};

struct rocefs_multicast {
  uint32_t qp;
  uint8_t gid[16];
};

struct rocefs_resize_cq {
  uint32_t handle;
  uint32_t entries;
};

struct rocefs_create_cq {
  uint64_t cookie;  /* in the channel's events */
  uint64_t channel; /* 0: none */
  uint32_t entries;
};

struct rocefs_put_back {
  uint64_t channel;                /* 0: the socket for asynchronous events */
  struct rocefs_async_event event; /* for a channel only the element is sent */
};

struct rocefs_create_srq {
  uint64_t cookie;
  uint32_t pd;
  uint32_t max_wr;
  uint32_t max_sge;
};

struct rocefs_srq_attr {
  uint32_t handle;
  uint32_t max_wr;
  uint32_t max_sge;
  uint32_t limit;
};

struct rocefs_create_qp {
  uint64_t cookie;
  uint32_t pd;
  uint32_t type; /* ibv_qp_type: RC 2, UC 3, UD 4 */
  uint32_t send_cq;
  uint32_t receive_cq;
  uint32_t srq; /* a handle, or 0 */
  uint32_t max_send_wr;
  uint32_t max_receive_wr;
  uint32_t max_send_sge;
  uint32_t max_receive_sge;
  uint32_t max_inline;
};

/* ibv_qp_attr, with the values of its enumerations. */
struct rocefs_qp_attr {
  uint32_t handle;
  uint32_t mask; /* ibv_qp_attr_mask */
  uint32_t state;
  uint32_t current_state;
  uint32_t path_mtu;
  uint32_t path_migration;
  uint32_t qkey;
  uint32_t receive_psn;
  uint32_t send_psn;
  uint32_t remote_qpn;
  uint32_t access;
  uint32_t pkey_index;
  uint32_t send_draining; /* only in a query */
  uint32_t max_rd_atomic;
  uint32_t max_dest_rd_atomic;
  uint32_t min_rnr_timer;
  uint32_t port;
  uint32_t timeout;
  uint32_t retry_count;
  uint32_t rnr_retry;
  uint32_t notify_drained; /* raise an event when the send queue is drained */
  struct rocefs_address path;
};

struct rocefs_request {
  uint32_t op;
  uint32_t reserved;
  union {
    struct rocefs_hello hello;
    uint32_t handle; /* object to destroy or query; the port */
    struct rocefs_address address;
    struct rocefs_reg_mr reg_mr;
    struct rocefs_rereg_mr rereg_mr;
    struct rocefs_alloc_mw alloc_mw;
    struct rocefs_multicast multicast;
    uint64_t channel; /* create: name of the channel, the SO_COOKIE of the client's end */
    struct rocefs_put_back put_back;
    struct rocefs_create_cq create_cq;
    struct rocefs_resize_cq resize_cq;
    struct rocefs_create_srq create_srq;
    struct rocefs_srq_attr srq;
    struct rocefs_create_qp create_qp;
    struct rocefs_qp_attr qp;
    struct rocefs_pcc_claim claim;
    struct rocefs_pcc_run run;
    struct rocefs_pcc_log log;
  } u;
};

/* Answer of CREATE_CQ, RESIZE_CQ, CREATE_SRQ and CREATE_QP. Handles are never 0. */
struct rocefs_created {
  uint32_t handle;
  uint32_t doorbell;        /* QP and SRQ */
  uint32_t qpn;             /* QP number; SRQ number */
  uint32_t entries;         /* CQ entries, or slots of the send queue; 0: none */
  uint32_t receive_entries; /* slots of the receive queue */
  uint32_t max_inline;
  uint64_t send_offset; /* offset of the slots in the memfd */
  uint64_t receive_offset;
  uint64_t size; /* size of the memfd */
};

struct rocefs_answer {
  int32_t error; /* 0 or an errno: no change was made */
  uint32_t reserved;
  union {
    struct rocefs_device_attr device;
    struct rocefs_port_attr port;
    uint32_t handle;
    struct { /* window: no lkey */
      uint32_t handle, lkey, rkey;
    } mr;
    struct rocefs_created created;
    struct rocefs_srq_attr srq;
    struct rocefs_qp_attr qp;
    struct { /* destroyed CQ, SRQ or QP: number of its events sent */
      uint32_t completions, asynchronous;
    } events;
    char reason[120]; /* error: reason, for a log */
  } u;
};

#ifdef __cplusplus
}
#endif

#endif
