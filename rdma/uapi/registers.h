/* The register pages of a device: how whoever sets its windows (PCC) and the engine see each other,
 * as through a BAR of a NIC. Two sealed memfds: one that only the engine writes, which everybody
 * else maps read-only, and one that only the owner of the windows writes. A new owner gets a new
 * one, so what an earlier owner still has mapped is nobody's any more. The engine believes nothing
 * that it reads there: a window is a number, whatever it says.
 *
 * One cache line per side and queue pair: that of queue pair N is number N - ROCEFS_FIRST_QPN.
 * Words are loaded and stored whole (atomically); what is said to announce others is stored with
 * release order and loaded with acquire order. Times are in nanoseconds, windows in octets.
 */
#ifndef ROCEFS_REGISTERS_H
#define ROCEFS_REGISTERS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  ROCEFS_REGISTERS_VERSION = 1,
  ROCEFS_MAX_QPS = 16384, /* of one device */
  ROCEFS_FIRST_QPN = 17,  /* 0 and 1 are special, few more are reserved */
  ROCEFS_TRACE_ENTRIES = 65536,
};

#define ROCEFS_NO_WINDOW 0xffffffffu /* there is no limit */
#define ROCEFS_FIRST_WINDOW 0x80000u /* instead of that, where an algorithm begins */
#define ROCEFS_LEAST_WINDOW 1024u    /* smaller ones are stored as this */

/* ---- The engine's page ---- */

struct rocefs_qp_signals {
  /* Odd while the queue pair is active: it can send or receive. Another number for each time that
   * one of this number became so. Stored last when it becomes active. */
  uint32_t generation;
  uint32_t pid; /* of the program that made it; 0 where that is not known */
  uint64_t cnps;
  uint64_t rtt_ns;    /* the latest that was measured */
  uint32_t rtt_probe; /* which probe that answered (rocefs_qp_control.probe); announces rtt_ns */
  uint32_t reserved;
  uint64_t rate_bps; /* at which it is paced; the link's where nothing paces it */
  char comm[16];     /* of that program, with a NUL if it is shorter */
} __attribute__((aligned(64)));

struct rocefs_signals_page {
  uint32_t version;
  uint32_t virtual_clock; /* not 0: time passes only when told to */
  /* Engine time is base_ns + (CLOCK_MONOTONIC - since_ns) / dilation. The three belong together
   * where clock_sequence is even, and the same before and after they were loaded. */
  uint32_t clock_sequence;
  uint32_t reserved;
  uint64_t base_ns;
  uint64_t since_ns;
  uint64_t dilation;
  /* Counts queue pairs that became active, or ceased to be. A futex that the engine wakes. */
  uint32_t changes __attribute__((aligned(64)));
  uint32_t active_count;
  /* Bit N % 64 of active[N / 64], for line N. */
  uint64_t active[ROCEFS_MAX_QPS / 64] __attribute__((aligned(64)));
  struct rocefs_qp_signals qps[ROCEFS_MAX_QPS];
};

/* ---- The owner's page ---- */

struct rocefs_qp_control {
  /* The queue pair's generation << 32 | octets that may be in flight, of which one packet always
   * may. Of another generation: there is no limit. */
  uint64_t window;
  /* Another number than before: the engine measures the time from the next packet of a request
   * until it is acknowledged, and says so in rtt_probe. One at a time: a new one takes the place of
   * one that is under way. A packet that must be sent again answers nothing. */
  uint32_t probe;
  uint32_t slot;         /* of the algorithm; the rest is for people */
  uint64_t cnp_baseline; /* what `cnps` was when counting began */
  uint64_t rtt_timeouts;
  uint32_t calls; /* how often the window was set since the slot was applied */
  uint32_t reserved[5];
} __attribute__((aligned(64)));

/* A change of a window. */
struct rocefs_trace_entry {
  uint64_t at_ns;
  uint32_t qpn;
  uint32_t slot;
  uint32_t old_window;
  uint32_t new_window;
  uint32_t cnps;   /* that came since the call before, if the algorithm asked */
  uint32_t rtt_ns; /* that was new; 0 for none */
};

struct rocefs_control_page {
  uint32_t version;
  uint32_t reserved;
  /* How many entries have ever been written; entry N is trace[N % ROCEFS_TRACE_ENTRIES]. */
  uint64_t traced __attribute__((aligned(64)));
  struct rocefs_qp_control qps[ROCEFS_MAX_QPS];
  struct rocefs_trace_entry trace[ROCEFS_TRACE_ENTRIES];
};

#ifdef __cplusplus
}
#endif
#endif
