/* The register pages of a device: shared by the engine and the program that sets its windows (PCC),
 * like the BAR of a NIC. Two sealed memfds: the engine writes one, which all others map read-only,
 * and the owner of the windows writes the other. A new owner gets a new one, so a page that an
 * earlier owner still maps has no effect. The engine trusts no value there: a window is a number.
 *
 * One cache line per side and queue pair: line N - ROCEFS_FIRST_QPN for queue pair N. Words are
 * loaded and stored whole (atomically); a word that announces others is stored with release order
 * and loaded with acquire order. Times are in nanoseconds, windows in octets.
 */
#ifndef ROCEFS_REGISTERS_H
#define ROCEFS_REGISTERS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  ROCEFS_REGISTERS_VERSION = 2,
  ROCEFS_MAX_QPS = 16384, /* per device */
  ROCEFS_FIRST_QPN = 17,  /* 0 and 1 are special, few more are reserved */
  ROCEFS_TRACE_ENTRIES = 65536,
  ROCEFS_EVENT_ENTRIES = 16384,
  ROCEFS_CALL_ENTRIES = 131072,
  ROCEFS_MAX_HOPS = 5, /* switches that an event tells of: the first ones on the way */
};

#define ROCEFS_NO_WINDOW 0xffffffffu /* there is no limit */
#define ROCEFS_FIRST_WINDOW 0x80000u /* instead of that, where an algorithm begins */
#define ROCEFS_LEAST_WINDOW 1024u    /* smaller ones are stored as this */

/* ---- The engine's page ---- */

struct rocefs_qp_signals {
  /* Odd while the queue pair is active: it can send or receive. A new value each time a queue pair
   * of this number becomes active. Stored last when it does. */
  uint32_t generation;
  uint32_t pid; /* creating program; 0: unknown */
  uint64_t cnps;
  uint64_t rtt_ns;    /* the latest measurement */
  uint32_t rtt_probe; /* rocefs_qp_control.probe of that measurement; announces rtt_ns */
  uint32_t window;    /* octets by which the engine acts without an owner of the windows (CFR) */
  uint64_t rate_bps;  /* pacing rate; the link's if not paced */
  char comm[16];      /* name of the creating program, with a NUL if it is shorter */
  uint64_t line_bps;  /* the link's */
} __attribute__((aligned(64)));

enum rocefs_qp_event_kind {
  ROCEFS_QP_ACK = 1, /* an acknowledgement, also one that acknowledges nothing new */
  ROCEFS_QP_NACK,    /* one that asks for packets again */
  ROCEFS_QP_TIMEOUT, /* none came in time */
};

/* An egress queue of a switch on the way of a data packet, when the packet left it. */
struct rocefs_qp_hop {
  uint32_t queue;     /* octets that stayed, in units of 16 */
  uint32_t sent;      /* octets that the port has sent, in units of 64, modulo 2^24 */
  uint32_t time_ns;   /* modulo 2^24 */
  uint32_t rate_mbps; /* of the port's link */
};

/* News for a queue pair that asked for events. */
struct rocefs_qp_event {
  uint64_t at_ns;
  uint32_t qpn;
  uint32_t generation; /* of the queue pair */
  uint64_t acked;      /* octets of its requests that are acknowledged so far */
  uint64_t sent;       /* octets before the next packet; less after going back */
  uint32_t bytes;      /* newly acknowledged; clipped */
  uint32_t rtt_ns;     /* since the packet that it answers was sent; 0: not known */
  uint16_t kind;       /* rocefs_qp_event_kind */
  uint8_t marked;      /* data packets with a CE mark since the last response; clipped */
  uint8_t hops;        /* switches on the way that tell; the first ROCEFS_MAX_HOPS are below */
  uint32_t way;        /* another number: other switches or ports */
  struct rocefs_qp_hop hop[ROCEFS_MAX_HOPS];
};

struct rocefs_signals_page {
  uint32_t version;
  uint32_t virtual_clock; /* not 0: time advances only on command */
  /* Engine time is base_ns + (CLOCK_MONOTONIC - since_ns) / dilation. The three are consistent if
   * clock_sequence is even, and the same before and after loading them. */
  uint32_t clock_sequence;
  uint32_t reserved;
  uint64_t base_ns;
  uint64_t since_ns;
  uint64_t dilation;
  uint32_t trace_calls; /* not 0: the owner notes each call of an algorithm */
  /* Number of activations and deactivations of queue pairs. A futex that the engine wakes. */
  uint32_t changes __attribute__((aligned(64)));
  uint32_t active_count;
  /* Bit N % 64 of active[N / 64], for line N. */
  uint64_t active[ROCEFS_MAX_QPS / 64] __attribute__((aligned(64)));
  struct rocefs_qp_signals qps[ROCEFS_MAX_QPS];
  /* Number of events written so far; entry N is events[N % ROCEFS_EVENT_ENTRIES]. Valid if, after
   * it was copied, less than ROCEFS_EVENT_ENTRIES - 1 have been written since. */
  uint64_t events_written __attribute__((aligned(64)));
  struct rocefs_qp_event events[ROCEFS_EVENT_ENTRIES] __attribute__((aligned(64)));
};

/* ---- The owner's page ---- */

struct rocefs_qp_control {
  /* The queue pair's generation << 32 | octets that may be in flight; one packet always may.
   * Another generation: no limit. */
  uint64_t window;
  /* A changed value makes the engine measure the time from the next packet of a request until it is
   * acknowledged, and store the value in rtt_probe. One at a time: a new probe replaces a pending
   * one. A retransmitted packet gives no measurement. */
  uint32_t probe;
  uint32_t slot;         /* slot of the algorithm; the members below are informational */
  uint64_t cnp_baseline; /* value of `cnps` when counting began */
  uint64_t rtt_timeouts;
  uint32_t calls; /* number of window updates since the slot was applied */
  /* 0, or rocefs_qp_wants: each data packet asks for an acknowledgement then, and carries options
   * (rdma/wire/telemetry.h). */
  uint32_t wants;
  /* The queue pair's generation << 32 | rate in units of 100 kb/s, Ethernet framing included, at
   * which data leaves; 0, or another generation: no rate. */
  uint64_t rate;
  uint32_t late_calls; /* an interval or more after their time */
  uint32_t reserved;
} __attribute__((aligned(64)));

enum rocefs_qp_wants {
  ROCEFS_WANTS_EVENTS = 1,
  ROCEFS_WANTS_HOPS = 2, /* with events */
};
#define ROCEFS_RATE_UNIT 100000u /* bit/s */

/* A change of a window. */
struct rocefs_trace_entry {
  uint64_t at_ns;
  uint32_t qpn;
  uint32_t slot;
  uint32_t old_window;
  uint32_t new_window;
  uint32_t cnps;   /* since the call before, if the algorithm asked */
  uint32_t rtt_ns; /* new measurement; 0: none */
};

/* A call of an algorithm: what it saw and did. */
struct rocefs_qp_call {
  uint64_t at_ns;
  uint32_t qpn;
  uint32_t generation; /* of the queue pair */
  uint64_t rate_bps;   /* after the call; 0: none */
  uint32_t number; /* of the call since the slot was applied to the queue pair; the first is 1 */
  uint32_t slot;
  uint32_t old_window;
  uint32_t new_window;
  uint16_t kind; /* ROCEFS_QP_CALL; here as in rocefs_qp_event */
  uint16_t flags;
  uint32_t cnps;   /* read in the call */
  uint64_t rtt_ns; /* the latest; 0: none yet */
  uint64_t line_bps;
  uint32_t active; /* queue pairs */
  uint32_t reserved;
};
enum {
  ROCEFS_QP_CALL = 16,   /* beyond rocefs_qp_event_kind */
  ROCEFS_CALL_DUE = 1,   /* flags: the interval had passed */
  ROCEFS_CALL_RTT = 2,   /* rtt_ns is new */
  ROCEFS_CALL_PROBE = 4, /* the call asked for a round trip */
};

/* The events that a call took come before it. */
union rocefs_call_entry {
  struct rocefs_qp_event event;
  struct rocefs_qp_call call;
  uint64_t words[16];
};

struct rocefs_control_page {
  uint32_t version;
  uint32_t events_lost; /* overwritten before the owner read them */
  uint32_t slow_calls;  /* of an algorithm that took longer than 100 ms; counted by the card only */
  /* Number of entries written so far; entry N is trace[N % ROCEFS_TRACE_ENTRIES]. */
  uint64_t traced __attribute__((aligned(64)));
  struct rocefs_qp_control qps[ROCEFS_MAX_QPS];
  struct rocefs_trace_entry trace[ROCEFS_TRACE_ENTRIES];
  /* The same for calls, while trace_calls is not 0. */
  uint64_t calls_traced __attribute__((aligned(64)));
  union rocefs_call_entry calls[ROCEFS_CALL_ENTRIES] __attribute__((aligned(64)));
};

#ifdef __cplusplus
}
#endif
#endif
