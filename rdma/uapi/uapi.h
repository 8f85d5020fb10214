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
 * Work requests and completions pass through memory that both share (rings.h).
 *
 * Numbers are in host order, and so are immediates. Enumerations have the values of
 * <infiniband/verbs.h>.
 */
#ifndef ROCEFS_UAPI_H
#define ROCEFS_UAPI_H

#include <stdint.h>

#include "rdma/uapi/operations.h"
#include "rdma/uapi/pcc.h"
#include "rdma/uapi/rings.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  ROCEFS_UAPI_MAGIC = 0x52434653,
  ROCEFS_UAPI_VERSION = 6,
  ROCEFS_UAPI_REFUSAL = 0x52434652, /* in a greeting's magic: its version is an errno */
  ROCEFS_MAX_SHARED = 128,          /* shared regions of a client */
};

/* Octets of a client's memfd behind those of each shared region that no other region has: what the
 * client maps there beyond its region is nobody's. */
#define ROCEFS_SHARED_GAP (UINT64_C(4) << 30)

/* ---- Messages ---- */

/* Both are the same in every version, so that each end can name the other's (doc/abi.md). */
struct rocefs_greeting {
  uint32_t magic;
  uint32_t version;
};
/* Begins the first request. A client of another version than the engine's greeting sends it alone,
 * and leaves. */
struct rocefs_introduction {
  uint32_t op; /* HELLO, PCC_CLAIM or CM_OPEN */
  uint32_t reserved;
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
  /* Like REG_MR, but the region's bytes are those of a memfd, which the engine accesses itself. The
   * answer has the client's memfd, always the same, and the offset of new pages in it, zeroed; the
   * client maps them at the region's address. ENOMEM beyond
   * ROCEFS_MAX_SHARED. */
  ROCEFS_OP_SHARE_MR,
  /* Once. The answer has the memfd that a copier of the client serves (rdma/uapi/copier.h). */
  ROCEFS_OP_CREATE_COPIER,
  ROCEFS_OP_OPEN_XRCD,
  ROCEFS_OP_CLOSE_XRCD,
  /* Opens a receiving queue pair of XRC that some program has made; answered as CREATE_QP. */
  ROCEFS_OP_OPEN_QP,
  /* The answer has its memfd, zeroed, for copies of the program. */
  ROCEFS_OP_ALLOC_DM,
  ROCEFS_OP_FREE_DM,
  /* A region of device memory: its addresses begin at 0. Answered as REG_MR. */
  ROCEFS_OP_REG_DM_MR,
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

struct rocefs_alloc_dm {
  uint64_t length;
  uint32_t log_align;
};

struct rocefs_reg_dm_mr {
  uint64_t offset, length; /* of the device memory */
  uint32_t pd;
  uint32_t dm;
  uint32_t access; /* ibv_access_flags, with ZERO_BASED */
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
  uint32_t stamped; /* not 0: completions have time stamps */
};

struct rocefs_put_back {
  uint64_t channel;                /* 0: the socket for asynchronous events */
  struct rocefs_async_event event; /* for a channel only the element is sent */
};

enum rocefs_xrcd_flags {
  ROCEFS_XRCD_FILE = 1 << 0, /* shared by the programs of the user that name the same file */
  ROCEFS_XRCD_CREATE = 1 << 1,
  ROCEFS_XRCD_EXCLUSIVE = 1 << 2,
};

struct rocefs_open_xrcd {
  uint64_t device, inode; /* of the file */
  uint32_t flags;
};

struct rocefs_create_srq {
  uint64_t cookie;
  uint32_t pd;
  uint32_t max_wr;
  uint32_t max_sge;
  uint32_t xrcd; /* an XRC domain: packets name the queue; 0: queue pairs have it */
  uint32_t cq;   /* XRC: for all completions of its receives */
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
  uint32_t type; /* ibv_qp_type: RC 2, UC 3, UD 4, XRC_SEND 9, XRC_RECV 10 */
  uint32_t send_cq;
  uint32_t receive_cq;
  uint32_t srq; /* a handle, or 0 */
  uint32_t max_send_wr;
  uint32_t max_receive_wr;
  uint32_t max_send_sge;
  uint32_t max_receive_sge;
  uint32_t max_inline;
  uint32_t xrcd; /* XRC_RECV, which has no PD, CQ or request */
  uint32_t qpn;  /* OPEN_QP */
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
    struct rocefs_alloc_dm alloc_dm;
    struct rocefs_reg_dm_mr reg_dm_mr;
    struct rocefs_alloc_mw alloc_mw;
    struct rocefs_multicast multicast;
    uint64_t channel; /* create: name of the channel, the SO_COOKIE of the client's end */
    struct rocefs_put_back put_back;
    struct rocefs_create_cq create_cq;
    struct rocefs_resize_cq resize_cq;
    struct rocefs_open_xrcd open_xrcd;
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
      uint64_t offset; /* SHARE_MR */
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
