/* The operations of a send queue, one row each: the engine, the provider and its programs read the
 * same table. Numbers are those of <infiniband/verbs.h>. */
#ifndef ROCEFS_OPERATIONS_H
#define ROCEFS_OPERATIONS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Services that have an operation: bits by ibv_qp_type (IBTA 9.4). */
enum rocefs_services {
  ROCEFS_RC = 1 << 2,
  ROCEFS_UC = 1 << 3,
  ROCEFS_UD = 1 << 4,
  ROCEFS_XRC = 1 << 9, /* sends; the queue pairs that receive have no requests */
  ROCEFS_RC_UC = ROCEFS_RC | ROCEFS_UC,
  ROCEFS_RC_XRC = ROCEFS_RC | ROCEFS_XRC,
  ROCEFS_CONNECTED = ROCEFS_RC_UC | ROCEFS_XRC,
  ROCEFS_ALL_SERVICES = ROCEFS_CONNECTED | ROCEFS_UD,
};

enum rocefs_operation_traits {
  ROCEFS_PAYLOAD = 1 << 0,       /* sends octets of local memory, or inline ones */
  ROCEFS_IMMEDIATE = 1 << 1,     /* sends an immediate */
  ROCEFS_INVALIDATES = 1 << 2,   /* names a key to invalidate: of the far end, or if local, here */
  ROCEFS_RECEIVE = 1 << 3,       /* consumes a receive request of the far end */
  ROCEFS_READ_RESPONSE = 1 << 4, /* READ responses answer it, empty ones if it sends a payload */
  ROCEFS_ATOMIC_RESPONSE = 1 << 5, /* an atomic acknowledge answers it */
  ROCEFS_EIGHT_OCTETS = 1 << 6,    /* the length is eight octets */
  ROCEFS_LOCAL = 1 << 7,           /* transmits nothing */
};

/* Completions of send queues, ibv_wc_opcode. ROW(Name, NAME, number) */
#define ROCEFS_COMPLETIONS(ROW)      \
  ROW(Send, SEND, 0)                 \
  ROW(Write, RDMA_WRITE, 1)          \
  ROW(Read, RDMA_READ, 2)            \
  ROW(CompareSwap, COMP_SWAP, 3)     \
  ROW(FetchAdd, FETCH_ADD, 4)        \
  ROW(BindWindow, BIND_MW, 5)        \
  ROW(LocalInvalidate, LOCAL_INV, 6) \
  ROW(AtomicWrite, ATOMIC_WRITE, 9)

/* ROW(Name, NAME, number, services, PACKETS, traits, COMPLETION, builder, capability)
 *
 * number: ibv_wr_opcode.
 * PACKETS: opcodes of rdma/wire/opcode.h as RC has them. ROCEFS_MESSAGE(Kind, Last, Only): the
 *   first, middle, last and only packets of a message; ROCEFS_ONE(Opcode): a request of one packet.
 * builder: the flag of ibv_qp_create_send_ops_flags that asks for its ibv_wr_*().
 * capability: the flag of ibv_device_cap_flags that tells of it, or 0. */
#define ROCEFS_OPERATIONS(ROW)                                                                     \
  ROW(Write, RDMA_WRITE, 0, ROCEFS_CONNECTED, ROCEFS_MESSAGE(Write, Last, Only), ROCEFS_PAYLOAD,   \
      RDMA_WRITE, 1 << 0, 0)                                                                       \
  ROW(WriteImm, RDMA_WRITE_WITH_IMM, 1, ROCEFS_CONNECTED, ROCEFS_MESSAGE(Write, LastImm, OnlyImm), \
      ROCEFS_PAYLOAD | ROCEFS_IMMEDIATE | ROCEFS_RECEIVE, RDMA_WRITE, 1 << 1, 0)                   \
  ROW(Send, SEND, 2, ROCEFS_ALL_SERVICES, ROCEFS_MESSAGE(Send, Last, Only),                        \
      ROCEFS_PAYLOAD | ROCEFS_RECEIVE, SEND, 1 << 2, 0)                                            \
  ROW(SendImm, SEND_WITH_IMM, 3, ROCEFS_ALL_SERVICES, ROCEFS_MESSAGE(Send, LastImm, OnlyImm),      \
      ROCEFS_PAYLOAD | ROCEFS_IMMEDIATE | ROCEFS_RECEIVE, SEND, 1 << 3, 0)                         \
  ROW(Read, RDMA_READ, 4, ROCEFS_RC_XRC, ROCEFS_ONE(ReadRequest), ROCEFS_READ_RESPONSE, RDMA_READ, \
      1 << 4, 0)                                                                                   \
  ROW(CompareSwap, ATOMIC_CMP_AND_SWP, 5, ROCEFS_RC_XRC, ROCEFS_ONE(CmpSwap),                      \
      ROCEFS_ATOMIC_RESPONSE | ROCEFS_EIGHT_OCTETS, COMP_SWAP, 1 << 5, 0)                          \
  ROW(FetchAdd, ATOMIC_FETCH_AND_ADD, 6, ROCEFS_RC_XRC, ROCEFS_ONE(FetchAdd),                      \
      ROCEFS_ATOMIC_RESPONSE | ROCEFS_EIGHT_OCTETS, FETCH_ADD, 1 << 6, 0)                          \
  ROW(LocalInvalidate, LOCAL_INV, 7, ROCEFS_RC_UC, ROCEFS_NO_PACKETS,                              \
      ROCEFS_LOCAL | ROCEFS_INVALIDATES, LOCAL_INV, 1 << 7, 0)                                     \
  ROW(BindWindow, BIND_MW, 8, ROCEFS_RC_UC, ROCEFS_NO_PACKETS, ROCEFS_LOCAL, BIND_MW, 1 << 8,      \
      1 << 17 | 1 << 24)                                                                           \
  /* IBTA 9.4.1.1: of RC alone, though ibv_post_send(3) has it for UC. XRC binds no windows. */    \
  ROW(SendInvalidate, SEND_WITH_INV, 9, ROCEFS_RC, ROCEFS_MESSAGE(Send, LastInv, OnlyInv),         \
      ROCEFS_PAYLOAD | ROCEFS_INVALIDATES | ROCEFS_RECEIVE, SEND, 1 << 9, 0)                       \
  /* IBTA A19; the capability is IB_UVERBS_DEVICE_ATOMIC_WRITE. */                                 \
  ROW(AtomicWrite, ATOMIC_WRITE, 15, ROCEFS_RC_XRC, ROCEFS_ONE(AtomicWrite),                       \
      ROCEFS_PAYLOAD | ROCEFS_READ_RESPONSE | ROCEFS_EIGHT_OCTETS, ATOMIC_WRITE, 1 << 12,          \
      UINT64_C(1) << 40)

/* Flags of ibv_device_cap_flags that no operation stands for: PORT_ACTIVE_EVENT, SYS_IMAGE_GUID,
 * RC_RNR_NAK_GEN and XRC. */
#define ROCEFS_CAPABILITIES (1u << 10 | 1u << 11 | 1u << 12 | 1u << 20)

/* ROCEFS_WR_RDMA_WRITE and so on. */
enum rocefs_wr_opcode {
#define ROCEFS_ROW(name, NAME, number, services, packets, traits, completion, builder, capability) \
  ROCEFS_WR_##NAME = number,
  ROCEFS_OPERATIONS(ROCEFS_ROW)
#undef ROCEFS_ROW
};

/* ROCEFS_WC_SEND and so on. Receive queues have the bit of the first. */
enum rocefs_wc_opcode {
  ROCEFS_WC_RECV = 1 << 7,
  ROCEFS_WC_RECV_RDMA_WITH_IMM,
#define ROCEFS_ROW(name, NAME, number) ROCEFS_WC_##NAME = number,
  ROCEFS_COMPLETIONS(ROCEFS_ROW)
#undef ROCEFS_ROW
};

#ifdef __cplusplus
}
#endif

#endif
