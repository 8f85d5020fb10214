/* libmango: programmable congestion control (PCC) of a RoCE device, for C and C++.
 *
 * An algorithm is a function that is called for each active queue pair of a device, once per
 * interval. It reads congestion signals (CNPs, round-trip times) and sets the window of the queue
 * pair: the number of octets in flight. An algorithm runs
 *
 *  - as a plugin, a shared library that exports `mango_pcc_algo_plugin`, loaded by the card's
 *    daemon (`mango-ctl rdma pcc algo load`);
 *  - or in a user's program, which owns the device's windows from mango_pcc_create() until
 *    mango_pcc_destroy(): register, run, stop.
 *
 * Names follow the vendor's reference; this file decides what the reference leaves open. Source
 * code for the vendor's header compiles with this one; binaries are not compatible.
 *
 * Units. Times are engine time: real time, unless the device runs slower (its dilation). Windows
 * are in octets, times in the unit of the name.
 *
 * Parameters. Each queue pair has its own copy of the registered block, and the algorithm is called
 * with that copy; other fields of it hold state of the queue pair. The block is copied bytewise,
 * aligned for any type. The copy ends when the queue pair becomes inactive or gets another
 * algorithm. Fields registered as parameters can be read and set from outside during a run; other
 * fields are never changed.
 *
 * Threads. Functions that take a handle may be called on any thread, also concurrently; they block
 * until a call of an algorithm in progress returns. From within an algorithm, or from the callback
 * of mango_pcc_walk_params(), functions that would wait for it return MANGO_STATUS_BAD_STATE;
 * queries of active queue pairs are allowed there. Calls for one queue pair never overlap, and all
 * come from one thread during a run; calls for different queue pairs may overlap.
 *
 * Statuses. Functions return MANGO_STATUS_OK (0) or a negative value. A failed call changes
 * nothing, unless its comment says otherwise. MANGO_STATUS_INVALID_PARAM: a required handle or
 * pointer is NULL, or a slot is not below MANGO_PCC_MAX_SLOTS. MANGO_STATUS_NO_MEMORY: any function
 * that stores something.
 */
#ifndef LIBMANGO_H
#define LIBMANGO_H

#include <stddef.h>
#include <stdint.h>

#define MANGO_PCC_MAX_QPS 16384        /* of one device, active at once */
#define MANGO_PCC_MAX_SLOTS 16         /* slots are 0 to 15 */
#define MANGO_PCC_MAX_THREADS 64       /* poller threads of one run */
#define MANGO_PCC_MAX_PARAMS 64        /* registered in one slot */
#define MANGO_PCC_MAX_PARAM_SIZE 65536 /* octets of one block */
#ifndef MANGO_NO_SHORT_NAMES
#define MAX_QPS MANGO_PCC_MAX_QPS
#endif

#define MANGO_API __attribute__((visibility("default")))
#ifdef __cplusplus
/* Defaults of members that a designated initializer omits. */
#define MANGO_OR_NULL_ = nullptr
#define MANGO_OR_ZERO_ = 0
#define MANGO_STATIC_ASSERT_(what, why) static_assert(what, why)
#else
#define MANGO_OR_NULL_
#define MANGO_OR_ZERO_
#define MANGO_STATIC_ASSERT_(what, why) _Static_assert(what, why)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Types ---- */

/* Handle made by mango_pcc_create(). */
typedef void* mango_pcc_h;
/* Device of a handle. */
typedef void* mango_context_h;

typedef enum _mango_status {
  MANGO_STATUS_OK = 0,
  MANGO_STATUS_ERROR = -1,
  MANGO_STATUS_INVALID_PARAM = -2,
  MANGO_STATUS_NO_MEMORY = -3,
  MANGO_STATUS_NOT_FOUND = -4,
  MANGO_STATUS_ALREADY_OPENED = -5, /* name or slot in use; unchanged */
  MANGO_STATUS_NOT_OPENED = -6,
  MANGO_STATUS_BUSY = -7,
  MANGO_STATUS_NOT_SUPPORTED = -8,
  MANGO_STATUS_TIMEOUT = -9,
  MANGO_STATUS_NO_DEVICE = -10,
  MANGO_STATUS_PERMISSION = -11,
  MANGO_STATUS_IO = -12,
  MANGO_STATUS_LIMIT = -13, /* exceeds one of MANGO_PCC_MAX_… */
  MANGO_STATUS_BAD_STATE = -14,
  MANGO_STATUS_PLUGIN = -15
} mango_status_e;

typedef enum _mango_log_level {
  MANGO_LOG_LEVEL_ERROR,
  MANGO_LOG_LEVEL_WARN,
  MANGO_LOG_LEVEL_INFO,
  MANGO_LOG_LEVEL_DEBUG
} mango_log_level_e;

/* Events of mango_pcc_event_get_val() and mango_pcc_event_request(). */
typedef enum _mango_pcc_event {
  MANGO_PCC_EVENT_CNP, /* congestion notification packets */
  MANGO_PCC_EVENT_RTT  /* round-trip time, in nanoseconds */
} mango_pcc_event_e;

/* Metrics that an event-style algorithm reads; others are not sampled. */
typedef enum _mango_pcc_metric_flags {
  MANGO_PCC_METRIC_NONE = 0,
  MANGO_PCC_METRIC_CNP = 1 << 0,
  MANGO_PCC_METRIC_RTT = 1 << 1
} mango_pcc_metric_flags_e;

typedef enum _mango_pcc_param_type {
  MANGO_PCC_PARAM_TYPE_UINT32,
  MANGO_PCC_PARAM_TYPE_DOUBLE,
  MANGO_PCC_PARAM_TYPE_INT32,
  MANGO_PCC_PARAM_TYPE_UINT64,
  MANGO_PCC_PARAM_TYPE_INT64,
  MANGO_PCC_PARAM_TYPE_FLOAT,
  MANGO_PCC_PARAM_TYPE_BOOL /* one octet, 0 or 1 */
} mango_pcc_param_type_e;

typedef enum _mango_pcc_config_option {
  MANGO_PCC_CONFIG_INTERVAL /* time between two calls for one queue pair */
} mango_pcc_config_option_e;

typedef struct _mango_pcc_config {
  mango_pcc_config_option_e option;
  union {
    unsigned int interval_us; /* 1 to 1000000; 60 unless set */
  } value;
} mango_pcc_config_t;

/* Input of an event-style algorithm. Reserved octets are 0. */
typedef struct _mango_pcc_context {
  uint32_t current_window;  /* octets; 0xffffffff: no limit */
  uint32_t cnp_delta;       /* CNPs since the last call; 0 without MANGO_PCC_METRIC_CNP */
  uint64_t latest_rtt_ns;   /* 0 before the first, or without MANGO_PCC_METRIC_RTT */
  uint8_t rtt_updated;      /* 1 if latest_rtt_ns is new since the last call */
  uint8_t _pad[3];          /* 0 */
  uint32_t active_qp_count; /* of the device */
  uint8_t _reserved[40];
} mango_pcc_context_t;

/* Result of an event-style algorithm. Start from zero: `mango_pcc_result_t result = {0};`, in C++
 * `{}`. */
typedef struct _mango_pcc_result {
  /* Argument of mango_pcc_window_update(). Counted also if equal to current_window. 0 sets nothing
   * and logs a warning. */
  uint32_t new_window;
  uint8_t request_rtt_probe; /* 1: measure a round trip; needs MANGO_PCC_METRIC_RTT */
  uint8_t _reserved[27];     /* 0; other values are ignored, with a warning */
} mango_pcc_result_t;

MANGO_STATIC_ASSERT_(sizeof(mango_pcc_context_t) == 64, "the context has 64 octets");
MANGO_STATIC_ASSERT_(offsetof(mango_pcc_context_t, latest_rtt_ns) == 8, "as laid out above");
MANGO_STATIC_ASSERT_(offsetof(mango_pcc_context_t, active_qp_count) == 20, "as laid out above");
MANGO_STATIC_ASSERT_(offsetof(mango_pcc_context_t, _reserved) == 24, "as laid out above");
MANGO_STATIC_ASSERT_(sizeof(mango_pcc_result_t) == 32, "the result has 32 octets");
MANGO_STATIC_ASSERT_(offsetof(mango_pcc_result_t, _reserved) == 5, "as laid out above");

/* Legacy algorithm: reads signals and sets the window through the functions at the end of this
 * file. `params` is the queue pair's copy; never NULL. */
typedef void mango_pcc_algo_fn(void* params);
/* Event-style algorithm: a snapshot in, a decision out. `ctx` is valid until it returns. */
typedef mango_pcc_result_t mango_pcc_algo_event_fn(void* params, const mango_pcc_context_t* ctx);

/* Parameter, made by REGISTER_UINT32_PARAM() and the other macros below. */
typedef struct _mango_pcc_param {
  const char* name; /* 1 to 64 of A-Z a-z 0-9 _ . -, not starting with a dot */
  mango_pcc_param_type_e type;
  size_t offset; /* in the block */
} mango_pcc_param_t;

/* `value_ptr` points to a value of `type`, until the callback returns. */
typedef void (*mango_pcc_param_walk_fn)(const char* name, mango_pcc_param_type_e type,
                                        void* value_ptr, void* user_data);

/* Definition exported by a plugin as mango_pcc_algo_plugin. Read once, when the plugin is loaded;
 * the functions must stay callable until it is unloaded. */
typedef struct _mango_pcc_algo_plugin {
  /* Name: 1 to 31 printable characters, no blank and none of / = , * ? \ ' "; unique, does not
   * begin with `-`, and is not `.`, `..`, `none` or `all`. */
  const char* name MANGO_OR_NULL_;
  /* Description in one line; may be NULL. */
  const char* desc MANGO_OR_NULL_;
  /* Returns the initial block of the queue pairs' copies and its size, and registers its parameters
   * in `slot` of `pcc`. Failure: returns NULL with a size other than 0. May be NULL for an
   * algorithm without parameters. Only mango_pcc_param_register(), mango_pcc_params_register() and
   * mango_pcc_get_context() may be called with `pcc`: the others return BAD_STATE.
   * mango_pcc_log() is allowed. */
  void* (*init_params)(mango_pcc_h pcc, unsigned int slot, size_t* param_size)MANGO_OR_NULL_;
  /* Frees the block of init_params when the plugin is unloaded or refused; may be NULL. */
  void (*destroy_params)(void* params) MANGO_OR_NULL_;
  /* Algorithm: one of the two; algo_event_fn takes precedence. */
  mango_pcc_algo_fn* algo_fn MANGO_OR_NULL_;
  mango_pcc_algo_event_fn* algo_event_fn MANGO_OR_NULL_;
  uint32_t required_metrics MANGO_OR_ZERO_; /* mango_pcc_metric_flags_e, of algo_event_fn */
} mango_pcc_algo_plugin_t;

/* Defined by plugins only. */
MANGO_API extern const mango_pcc_algo_plugin_t mango_pcc_algo_plugin;

/* Number of what a plugin and its caller agree on, in whatever includes this file: a plugin with
 * another one is refused. Not of the vendor's API. */
#define MANGO_PLUGIN_ABI 1
MANGO_API extern const uint32_t mango_plugin_abi __attribute__((weak));
const uint32_t mango_plugin_abi = MANGO_PLUGIN_ABI;

/* Text of a status; never NULL, also for values outside the enumeration. */
MANGO_API const char* mango_status_str(mango_status_e status);

/* ---- Handle ---- */

/* Claims the windows of a device, named as in `mango-ctl rdma pcc dev`. The mount is $ROCEFS_MOUNT,
 * $SYSFS_PATH, /sys, or the only mount of rocefs. NO_DEVICE: no mount, or no such device. BUSY: the
 * windows are claimed, or the card's daemon runs an algorithm. NOT_SUPPORTED: the device's clock is
 * virtual. PERMISSION, IO: the device cannot be accessed. */
MANGO_API mango_status_e mango_pcc_create(const char* roce_dev_name, mango_pcc_h* pcc);
/* Stops the run and releases the windows. The handle is invalid afterwards: no other call with it
 * may be in progress or follow. BAD_STATE from within an algorithm. */
MANGO_API mango_status_e mango_pcc_destroy(mango_pcc_h pcc);
/* Returns the same context each time, valid until mango_pcc_destroy(); NULL only for NULL. */
MANGO_API mango_context_h mango_pcc_get_context(mango_pcc_h pcc);

/* Takes effect at once, also during a run. INVALID_PARAM: unknown option, or value out of range. */
MANGO_API mango_status_e mango_pcc_ctrl_config(mango_pcc_h pcc, const mango_pcc_config_t* config);

/* Registers an algorithm in an empty slot, with a copy of `param_size` octets of `initial_params`,
 * which may be NULL if the size is 0. Allowed during a run. ALREADY_OPENED: the slot is in use.
 * LIMIT: the block is too large. */
MANGO_API mango_status_e mango_pcc_ctrl_reg_algo(mango_pcc_h pcc, unsigned int slot,
                                                 mango_pcc_algo_fn* algo,
                                                 const void* initial_params, size_t param_size);
/* Registers an event-style algorithm. INVALID_PARAM also for an unknown metric. */
MANGO_API mango_status_e mango_pcc_ctrl_reg_algo_event(mango_pcc_h pcc, unsigned int slot,
                                                       mango_pcc_algo_event_fn* algo,
                                                       uint32_t required_metrics,
                                                       const void* initial_params,
                                                       size_t param_size);
/* Empties a slot, with its parameters. NOT_FOUND: the slot is empty. BUSY: a queue pair runs it, or
 * the next active one would. */
MANGO_API mango_status_e mango_pcc_ctrl_unreg_algo(mango_pcc_h pcc, unsigned int slot);
/* Applies a slot to the listed queue pairs; with a NULL list, to all present and future ones,
 * including those set one by one before. Takes effect at the next call. A queue pair whose slot
 * changes starts with a new copy of the parameters and keeps its window; otherwise nothing changes.
 * NOT_FOUND: the slot is empty, or a queue pair is inactive. BAD_STATE: a list without a run. */
MANGO_API mango_status_e mango_pcc_ctrl_apply_algo(mango_pcc_h pcc, unsigned int slot,
                                                   const unsigned int* qp_list,
                                                   unsigned int qp_count);

/* Starts a run of the applied algorithm, or, if none is applied, of the lowest slot in use. Each
 * queue pair is called for the first time one interval after it was found; an unlimited window
 * becomes 512 KiB at once. CFR is off during the run. INVALID_PARAM: not 1 to
 * MANGO_PCC_MAX_THREADS. BUSY: a run is active. BAD_STATE: no algorithm is registered. NO_DEVICE:
 * the device has gone. IO, NOT_SUPPORTED: the device cannot be run this way.
 * If an algorithm writes past its parameters, the run is suspended until it is stopped, since other
 * memory may be damaged: no algorithm is called, windows stay, and an ERROR line in the daemon's
 * dmesg names the algorithm and the queue pair. */
MANGO_API mango_status_e mango_pcc_ctrl_run(mango_pcc_h pcc, unsigned int num_threads);
/* Ends the run; returns after the last call of an algorithm. Windows are unlimited then, or CFR's.
 * NOT_OPENED: no run. */
MANGO_API mango_status_e mango_pcc_ctrl_stop(mango_pcc_h pcc);

/* ---- Parameters ---- */

/* Registers a parameter. NOT_FOUND: the slot is empty. ALREADY_OPENED: the slot has a parameter of
 * that name, which stays. INVALID_PARAM: unknown type, invalid name, or a value not wholly inside
 * the block. LIMIT: MANGO_PCC_MAX_PARAMS are registered. */
MANGO_API mango_status_e mango_pcc_param_register(mango_pcc_h pcc, const unsigned int slot,
                                                  const char* name, mango_pcc_param_type_e type,
                                                  size_t offset);
/* Registers an array of parameters in order. Invalid ones are skipped, the others are registered.
 * Returns the first failure other than ALREADY_OPENED, else ALREADY_OPENED if there was one. */
MANGO_API mango_status_e mango_pcc_params_register(mango_pcc_h pcc, unsigned int slot,
                                                   const mango_pcc_param_t* params,
                                                   unsigned int nr_params);
/* Calls back for each parameter of the slot, in the order of registration. `mode` 1: for every
 * queue pair that runs the slot, and for the initial block; writes take effect at the next call.
 * Other modes: for the first queue pair only, or the initial block if there is none; writes are
 * discarded. No algorithm is called meanwhile. NOT_FOUND: the slot is empty. INVALID_PARAM: a value
 * was outside the bounds of a built-in parameter, and the writes to that block were undone. */
MANGO_API mango_status_e mango_pcc_walk_params(mango_pcc_h pcc, const unsigned int slot,
                                               mango_pcc_param_walk_fn callback, void* user_data,
                                               unsigned int mode);

/* ---- Queries, also from within an algorithm; NOT_FOUND: inactive queue pair, or no run ---- */

/* Active queue pairs, ascending; none without a run. `qp_list` has room for MANGO_PCC_MAX_QPS. */
MANGO_API mango_status_e mango_pcc_active_qp_list(mango_pcc_h pcc, uint32_t* qp_list,
                                                  uint32_t* qp_count);
/* CNPs since the run began, or since the queue pair became active if that was later. */
MANGO_API mango_status_e mango_pcc_cnp_count_by_qp(mango_pcc_h pcc, uint32_t qp_num,
                                                   uint64_t* cnp_count);
/* Window in octets; 0xffffffff: no limit. */
MANGO_API mango_status_e mango_pcc_window_current_by_qp(mango_pcc_h pcc, uint32_t qp_num,
                                                        uint32_t* window_size);
/* Number of window updates since the run began, or since another slot was applied. */
MANGO_API mango_status_e mango_pcc_window_count_by_qp(mango_pcc_h pcc, uint32_t qp_num,
                                                      uint32_t* count);

/* Name of a function that a plugin may export besides mango_pcc_algo_plugin; not of the vendor's
 * API. It is called when the plugin takes the place of the one that was loaded from its file
 * before, once for each queue pair that ran that one, while no algorithm is called: `before` are
 * the queue pair's parameters as the earlier plugin left them, `after` those of this one, which the
 * function may change. Without it each queue pair starts with the new plugin's parameters, but for
 * those that were set by `update-params`, which keep their values. Windows always stay. */
typedef void mango_pcc_algo_keep_fn(const void* before, size_t before_size, void* after,
                                    size_t after_size);
extern MANGO_API void mango_pcc_algo_keep(const void* before, size_t before_size, void* after,
                                          size_t after_size);

/* ---- From within an algorithm only, for its queue pair ---- */

/* Window in octets. 0 outside an algorithm. */
MANGO_API unsigned int mango_pcc_window_current(void);
/* Sets the window at once. Values below 1024 are stored as 1024; one packet may always be in
 * flight. No effect outside an algorithm. */
MANGO_API void mango_pcc_window_update(unsigned int new_window);
/* CNP: number since the last call of this function. RTT: latest round trip in nanoseconds if new
 * since the last call of this function, else 0; clipped to 4294967295. 0 for metrics that an
 * event-style algorithm did not declare, for unknown events, and outside an algorithm. */
MANGO_API unsigned int mango_pcc_event_get_val(mango_pcc_event_e event);
/* RTT: measures a round trip with the next packet; a later call sees the answer. One probe at a
 * time: a second request before the answer has no effect. NOT_SUPPORTED: CNP, or RTT without its
 * declaration. INVALID_PARAM: unknown event. BAD_STATE outside an algorithm. */
MANGO_API mango_status_e mango_pcc_event_request(mango_pcc_event_e event);
/* Writes one line to the device's log, as `[poller N][QP M] …`, if the log's level includes
 * `level`. In init_params of a plugin without the prefix; elsewhere to standard error. */
MANGO_API void mango_pcc_log(mango_log_level_e level, const char* fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Name in older revisions of the reference. */
static inline unsigned int mango_pcc_event_cnp_cnt(void)
    __attribute__((deprecated("use mango_pcc_event_get_val(MANGO_PCC_EVENT_CNP)")));
static inline unsigned int mango_pcc_event_cnp_cnt(void) {
  return mango_pcc_event_get_val(MANGO_PCC_EVENT_CNP);
}

#ifdef __cplusplus
} /* extern "C" */
#endif

/* ---- Elements of an array of mango_pcc_param_t; a field of another type does not compile ---- */

#define REGISTER_UINT32_PARAM(type, field) MANGO_PARAM_(UINT32, type, field)
#define REGISTER_DOUBLE_PARAM(type, field) MANGO_PARAM_(DOUBLE, type, field)
#define REGISTER_INT32_PARAM(type, field) MANGO_PARAM_(INT32, type, field)
#define REGISTER_UINT64_PARAM(type, field) MANGO_PARAM_(UINT64, type, field)
#define REGISTER_INT64_PARAM(type, field) MANGO_PARAM_(INT64, type, field)
#define REGISTER_FLOAT_PARAM(type, field) MANGO_PARAM_(FLOAT, type, field)
#define REGISTER_BOOL_PARAM(type, field) MANGO_PARAM_(BOOL, type, field)

#define MANGO_PARAM_(kind, type, field) \
  { #field, MANGO_PCC_PARAM_TYPE_##kind, MANGO_OFFSET_(kind, type, field) }

#ifdef __cplusplus
template <mango_pcc_param_type_e type>
struct mango_param_type_;
#define MANGO_PARAM_TYPE_(kind, first, second)               \
  template <>                                                \
  struct mango_param_type_<MANGO_PCC_PARAM_TYPE_##kind> {    \
    static constexpr bool is(const first*) { return true; }  \
    static constexpr bool is(const second*) { return true; } \
    static constexpr bool is(...) { return false; }          \
  };
struct mango_no_type_;
/* Distinct types of the same size. */
MANGO_PARAM_TYPE_(UINT32, unsigned int, mango_no_type_)
MANGO_PARAM_TYPE_(DOUBLE, double, mango_no_type_)
MANGO_PARAM_TYPE_(INT32, int, mango_no_type_)
MANGO_PARAM_TYPE_(UINT64, unsigned long, unsigned long long)
MANGO_PARAM_TYPE_(INT64, long, long long)
MANGO_PARAM_TYPE_(FLOAT, float, mango_no_type_)
MANGO_PARAM_TYPE_(BOOL, bool, mango_no_type_)
#undef MANGO_PARAM_TYPE_
template <bool right>
constexpr size_t mango_param_offset_(size_t offset) {
  static_assert(right, "the field is not of the type that it is registered as");
  return offset;
}
#define MANGO_OFFSET_(kind, type, field)                                  \
  mango_param_offset_<mango_param_type_<MANGO_PCC_PARAM_TYPE_##kind>::is( \
      static_cast<decltype(type::field)*>(nullptr))>(offsetof(type, field))
#else
/* Array size that is negative, an error, unless the field has one of the types. */
#define MANGO_OFFSET_(kind, type, field) \
  (offsetof(type, field) + 0 * sizeof(char[MANGO_IS_##kind##_(((type*)0)->field)]))
#define MANGO_IS_UINT32_(field) _Generic((field), unsigned int : 1, default : -1)
#define MANGO_IS_DOUBLE_(field) _Generic((field), double : 1, default : -1)
#define MANGO_IS_INT32_(field) _Generic((field), int : 1, default : -1)
#define MANGO_IS_UINT64_(field) \
  _Generic((field), unsigned long : 1, unsigned long long : 1, default : -1)
#define MANGO_IS_INT64_(field) _Generic((field), long : 1, long long : 1, default : -1)
#define MANGO_IS_FLOAT_(field) _Generic((field), float : 1, default : -1)
#define MANGO_IS_BOOL_(field) _Generic((field), _Bool : 1, default : -1)
#endif

#endif
