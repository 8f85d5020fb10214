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
  ROCEFS_REGISTERS_VERSION = 1,
  ROCEFS_MAX_QPS = 16384, /* per device */
  ROCEFS_FIRST_QPN = 17,  /* 0 and 1 are special, few more are reserved */
  ROCEFS_TRACE_ENTRIES = 65536,
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
  uint32_t reserved;
  uint64_t rate_bps; /* pacing rate; the link's if not paced */
  char comm[16];     /* name of the creating program, with a NUL if it is shorter */
} __attribute__((aligned(64)));

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
  /* Number of activations and deactivations of queue pairs. A futex that the engine wakes. */
  uint32_t changes __attribute__((aligned(64)));
  uint32_t active_count;
  /* Bit N % 64 of active[N / 64], for line N. */
  uint64_t active[ROCEFS_MAX_QPS / 64] __attribute__((aligned(64)));
  struct rocefs_qp_signals qps[ROCEFS_MAX_QPS];
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
  uint32_t reserved[5];
} __attribute__((aligned(64)));

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

struct rocefs_control_page {
  uint32_t version;
  uint32_t reserved;
  /* Number of entries written so far; entry N is trace[N % ROCEFS_TRACE_ENTRIES]. */
  uint64_t traced __attribute__((aligned(64)));
  struct rocefs_qp_control qps[ROCEFS_MAX_QPS];
  struct rocefs_trace_entry trace[ROCEFS_TRACE_ENTRIES];
};

#ifdef __cplusplus
}
#endif
#endif
