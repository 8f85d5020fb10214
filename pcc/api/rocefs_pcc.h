/* rocefs_pcc: signals and actions beyond the vendor's API (libmango.h), for C and C++. They are
 * named as ours, and need no change to what the vendor's functions do.
 *
 * Events. An event-style algorithm that has ROCEFS_PCC_METRIC_EVENTS among its metrics reads, in
 * each call, what happened to the requests of its queue pair since the call before: each
 * acknowledgement, each request for retransmission, each time-out. The NIC then asks for an
 * acknowledgement with each data packet, which carries a time stamp that the acknowledgement takes
 * back, and the number of congestion marks. Such an algorithm is called once when it begins with a
 * queue pair, and then only while events wait (or where it asked for a round trip), at most once in
 * an interval. Pollers look for events once in an interval; under the virtual clock at once if the
 * device's last look was an interval ago.
 *
 * Telemetry. With ROCEFS_PCC_METRIC_INT, too, data packets have room for what the switches on the
 * way tell, where their int/enable is 1: in-band telemetry as HPCC defines it (Li et al., SIGCOMM
 * 2019). The packets are 60 octets longer for it. They have room for the first 5 switches that
 * tell, which is the longest way of a fat tree; missed_hops counts those behind, of whose queues
 * nothing is known, and a warning in dmesg says so once.
 *
 * Limits. Events are of requests (SEND, WRITE) of reliable connections; responses to READs are not
 * acknowledged. Packets that leave for an uplink have no options: events tell octets alone. The
 * engine keeps the newest 16384 events of a device; where an algorithm is called too late, older
 * ones are lost, and rocefs_pcc_events_lost() counts them. A queue pair keeps 1024 that its
 * algorithm has not taken. A rate also paces what has no events: responses to READs, UC and UD.
 *
 * The functions below are for algorithms, in a call; outside they return 0 and do nothing.
 */
#ifndef ROCEFS_PCC_H
#define ROCEFS_PCC_H

#include "libmango.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Metrics besides those of mango_pcc_metric_flags_e, for required_metrics. */
#define ROCEFS_PCC_METRIC_EVENTS (1u << 16)
#define ROCEFS_PCC_METRIC_INT (1u << 17) /* with ROCEFS_PCC_METRIC_EVENTS */

#define ROCEFS_PCC_MAX_HOPS 5

typedef enum _rocefs_pcc_event_type {
  ROCEFS_PCC_EVENT_ACK = 1, /* an acknowledgement; also one that acknowledges nothing new */
  ROCEFS_PCC_EVENT_NACK,    /* one that asks for packets again */
  ROCEFS_PCC_EVENT_TIMEOUT  /* no acknowledgement came in time */
} rocefs_pcc_event_type_e;

/* Telemetry of a switch: the egress queue that the data packet left, when it left. */
typedef struct _rocefs_pcc_hop {
  uint64_t at_ns;       /* engine time */
  uint64_t rate_bps;    /* of the port, in steps of 1 Mb/s */
  uint32_t queue_bytes; /* left in the queue of the packet's priority, in steps of 16 */
  /* Octets that the port has sent, Ethernet framing included, in steps of 64, modulo
   * ROCEFS_PCC_SENT_MODULUS: only differences have a meaning. */
  uint32_t sent_bytes;
} rocefs_pcc_hop_t;
#define ROCEFS_PCC_SENT_MODULUS (1u << 30)

typedef struct _rocefs_pcc_event {
  uint64_t at_ns;       /* engine time of its arrival */
  uint64_t acked_bytes; /* octets of requests that are acknowledged so far */
  uint64_t sent_bytes;  /* octets of requests before the next packet; less after going back */
  uint32_t type;        /* rocefs_pcc_event_type_e */
  uint32_t bytes;       /* newly acknowledged */
  uint32_t rtt_ns;      /* from sending the newest packet that had arrived; 0: not known */
  uint32_t marked;      /* data packets that arrived with a CE mark since the last answer, at most
                         * 255 */
  uint32_t hops;        /* used in hop[], in the order of the way */
  uint32_t way;         /* of hop[]: the same number for the same ports of the same switches */
  uint32_t missed_hops; /* switches behind hop[], which is full, that would have told more */
  uint32_t _reserved;   /* 0 */
  rocefs_pcc_hop_t hop[ROCEFS_PCC_MAX_HOPS];
} rocefs_pcc_event_t;

/* Takes the oldest event that was not taken yet. Returns 1, or 0 if there is none. What a call
 * leaves is there in the next one. */
MANGO_API int rocefs_pcc_event_next(rocefs_pcc_event_t* event);
/* Events of this queue pair's device that were lost since the run began. */
MANGO_API uint64_t rocefs_pcc_events_lost(void);

/* Rate in bit/s, Ethernet framing included, at which data leaves, in steps of 100 kb/s, at least
 * one; 0: no rate. It acts besides the window, and ends with the run or when another slot is
 * applied. */
MANGO_API void rocefs_pcc_rate_update(uint64_t bits_per_second);
MANGO_API uint64_t rocefs_pcc_rate_current(void);
/* Rate of the port's link in bit/s. */
MANGO_API uint64_t rocefs_pcc_line_rate(void);
/* Engine time of the call, in ns. */
MANGO_API uint64_t rocefs_pcc_now(void);

/* Limits a parameter that is registered in the slot to values from `min` to `max`: others are
 * refused (EINVAL) when they are set from outside. Allowed in init_params. NOT_FOUND: no such slot
 * or parameter. INVALID_PARAM: no range, or the present value is outside; in init_params
 * such a value refuses the plugin later. */
MANGO_API mango_status_e rocefs_pcc_param_range(mango_pcc_h pcc, unsigned int slot,
                                                const char* name, double min, double max);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
