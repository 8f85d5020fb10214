/* rocefs_pcc_test: a unit test of an algorithm, without a NIC and without a mount, for C and C++.
 *
 * The test says what the algorithm sees, calls it at a time of its own, and looks at what it
 * decides. The algorithm runs as in a device, for one queue pair. Link the test with the plugin's
 * source and libmango. `mango-ctl rdma pcc new NAME` writes one to begin with.
 *
 *   rocefs_pcc_test_t* test = rocefs_pcc_test_open(&mango_pcc_algo_plugin);
 *   rocefs_pcc_decision_t now;
 *   rocefs_pcc_test_cnps(test, 1);
 *   rocefs_pcc_test_call(test, 60000, &now);
 *   assert(now.window == 262144);
 *   rocefs_pcc_test_close(test);
 *
 * One thread at a time for each test. What an algorithm logs goes to stderr, but for
 * MANGO_LOG_LEVEL_DEBUG.
 */
#ifndef ROCEFS_PCC_TEST_H
#define ROCEFS_PCC_TEST_H

#include "libmango.h"
#include "rocefs_pcc.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct _rocefs_pcc_test rocefs_pcc_test_t;

typedef struct _rocefs_pcc_decision {
  uint64_t rate_bps; /* 0: none */
  uint32_t window;   /* octets */
  uint32_t probe;    /* 1: the call has asked for a round trip */
} rocefs_pcc_decision_t;

/* Begins a test: no call yet, a window of 512 KiB, a link of 100 Gb/s, one active queue pair.
 * Returns NULL, with the reason on stderr, for a plugin that a device would refuse. It stays valid
 * as long as the test. */
MANGO_API rocefs_pcc_test_t* rocefs_pcc_test_open(const mango_pcc_algo_plugin_t* plugin);
MANGO_API void rocefs_pcc_test_close(rocefs_pcc_test_t* test);

/* Sets a registered parameter, as `mango-ctl rdma pcc update-params` does. NOT_FOUND: no such
 * parameter. INVALID_PARAM: no such value. The reason is on stderr. */
MANGO_API mango_status_e rocefs_pcc_test_param_set(rocefs_pcc_test_t* test, const char* name,
                                                   const char* value);
/* Stores the text of a parameter's value, with a NUL. LIMIT: `size` is too small. */
MANGO_API mango_status_e rocefs_pcc_test_param_get(rocefs_pcc_test_t* test, const char* name,
                                                   char* value, size_t size);

/* Window before the first call, after which it is BAD_STATE. */
MANGO_API mango_status_e rocefs_pcc_test_window(rocefs_pcc_test_t* test, uint32_t octets);
MANGO_API void rocefs_pcc_test_link(rocefs_pcc_test_t* test, uint64_t bits_per_second);
MANGO_API void rocefs_pcc_test_active(rocefs_pcc_test_t* test, uint32_t queue_pairs);

/* Happens before the next call. */
MANGO_API void rocefs_pcc_test_cnps(rocefs_pcc_test_t* test, uint32_t more);
/* The answer to the latest probe. BAD_STATE: the algorithm has not asked for one. */
MANGO_API mango_status_e rocefs_pcc_test_rtt(rocefs_pcc_test_t* test, uint64_t rtt_ns);
/* An event, for an algorithm with ROCEFS_PCC_METRIC_EVENTS; others see none. Members have the steps
 * that rocefs_pcc.h names, and a hop is less than 16 ms before the event. INVALID_PARAM: no such
 * event. */
MANGO_API mango_status_e rocefs_pcc_test_event(rocefs_pcc_test_t* test,
                                               const rocefs_pcc_event_t* event);

/* Calls the algorithm at this engine time. `decision` may be NULL. PLUGIN: it wrote past its
 * parameters, the reason is on stderr. */
MANGO_API mango_status_e rocefs_pcc_test_call(rocefs_pcc_test_t* test, uint64_t at_ns,
                                              rocefs_pcc_decision_t* decision);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
