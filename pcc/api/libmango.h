/* libmango: programmable congestion control (PCC) of a RoCE device, for C and C++.
 *
 * An algorithm is a function that is called for each active queue pair of a device, once per
 * interval. It sees what the network told the queue pair (CNPs, round-trip times) and sets its
 * window: how many octets may be in flight. There are two ways to run one:
 *
 *  - as a plugin, a shared library that exports `mango_pcc_algo_plugin`, loaded by the card's
 *    daemon (`mango-ctl rdma pcc algo load`);
 *  - in a program of one's own, which owns the device's windows from mango_pcc_create() until
 *    mango_pcc_destroy(): register, run, stop.
 *
 * Names are as the vendor's reference gives them; what it leaves open is decided here. A source
 * that compiles with the vendor's header is meant to compile with this one; binaries are not.
 *
 * Times are engine time: real time, unless the device runs slower than that (its dilation). Windows
 * are in octets, times in the unit that the name says.
 *
 * Parameters. Each queue pair has a copy of its own of the block that was registered, and that is
 * what the algorithm is called with: what it keeps there is state of that queue pair. The copy is
 * made byte by byte, aligned for any type; it is gone when the queue pair ceases to be active or
 * another algorithm is applied to it. Fields that were registered as parameters can be read and set
 * from outside while it runs; no others are ever touched.
 *
 * Threads. Functions that take a handle may be called on any thread, also at once, and block for as
 * long as an algorithm that is being called takes. From within an algorithm, or from the callback
 * of mango_pcc_walk_params(), those that would have to wait for it return MANGO_STATUS_BAD_STATE;
 * the queries of active queue pairs may be called there too. Calls for one queue pair never
 * overlap, and all come from the same thread while a run lasts; calls for different ones may
 * overlap.
 *
 * Statuses. Every function returns MANGO_STATUS_OK, which is 0, or a negative value, and then has
 * changed nothing unless it says so. MANGO_STATUS_INVALID_PARAM: a handle or a pointer that must
 * not be NULL is, or a slot is not below MANGO_PCC_MAX_SLOTS. MANGO_STATUS_NO_MEMORY is possible
 * wherever something is kept.
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
/* What a designated initializer leaves out. */
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

/* What mango_pcc_create() makes. */
typedef void* mango_pcc_h;
/* The device behind it. */
typedef void* mango_context_h;

typedef enum _mango_status {
  MANGO_STATUS_OK = 0,
  MANGO_STATUS_ERROR = -1,
  MANGO_STATUS_INVALID_PARAM = -2,
  MANGO_STATUS_NO_MEMORY = -3,
  MANGO_STATUS_NOT_FOUND = -4,
  MANGO_STATUS_ALREADY_OPENED = -5, /* the name or the slot is taken; what was there stays */
  MANGO_STATUS_NOT_OPENED = -6,
  MANGO_STATUS_BUSY = -7,
  MANGO_STATUS_NOT_SUPPORTED = -8,
  MANGO_STATUS_TIMEOUT = -9,
  MANGO_STATUS_NO_DEVICE = -10,
  MANGO_STATUS_PERMISSION = -11,
  MANGO_STATUS_IO = -12,
  MANGO_STATUS_LIMIT = -13, /* more than one of the MANGO_PCC_MAX_… allows */
  MANGO_STATUS_BAD_STATE = -14,
  MANGO_STATUS_PLUGIN = -15
} mango_status_e;

typedef enum _mango_log_level {
  MANGO_LOG_LEVEL_ERROR,
  MANGO_LOG_LEVEL_WARN,
  MANGO_LOG_LEVEL_INFO,
  MANGO_LOG_LEVEL_DEBUG
} mango_log_level_e;

/* For mango_pcc_event_get_val() and mango_pcc_event_request(). */
typedef enum _mango_pcc_event {
  MANGO_PCC_EVENT_CNP, /* congestion notification packets */
  MANGO_PCC_EVENT_RTT  /* round-trip time, in nanoseconds */
} mango_pcc_event_e;

/* What an event-style algorithm wants to be told. What is not asked for is not read. */
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

/* What an event-style algorithm is given. A reserved octet is 0. */
typedef struct _mango_pcc_context {
  uint32_t current_window;  /* octets; 0xffffffff: there is no limit */
  uint32_t cnp_delta;       /* CNPs since the call before; 0 without MANGO_PCC_METRIC_CNP */
  uint64_t latest_rtt_ns;   /* 0 while there is none, or without MANGO_PCC_METRIC_RTT */
  uint8_t rtt_updated;      /* 1 if latest_rtt_ns came since the call before */
  uint8_t _pad[3];          /* 0 */
  uint32_t active_qp_count; /* of the device */
  uint8_t _reserved[40];
} mango_pcc_context_t;

/* What it answers. Start from an empty one: `mango_pcc_result_t result = {0};`, in C++ `{}`. */
typedef struct _mango_pcc_result {
  /* As mango_pcc_window_update() takes it: it is set and counted, also when it is current_window,
   * which leaves it as it is. 0 sets nothing, with a warning. */
  uint32_t new_window;
  uint8_t request_rtt_probe; /* 1: measure a round trip; wants MANGO_PCC_METRIC_RTT */
  uint8_t _reserved[27];     /* 0; others are ignored, with a warning */
} mango_pcc_result_t;

MANGO_STATIC_ASSERT_(sizeof(mango_pcc_context_t) == 64, "the context has 64 octets");
MANGO_STATIC_ASSERT_(offsetof(mango_pcc_context_t, latest_rtt_ns) == 8, "as laid out above");
MANGO_STATIC_ASSERT_(offsetof(mango_pcc_context_t, active_qp_count) == 20, "as laid out above");
MANGO_STATIC_ASSERT_(offsetof(mango_pcc_context_t, _reserved) == 24, "as laid out above");
MANGO_STATIC_ASSERT_(sizeof(mango_pcc_result_t) == 32, "the result has 32 octets");
MANGO_STATIC_ASSERT_(offsetof(mango_pcc_result_t, _reserved) == 5, "as laid out above");

/* A legacy algorithm: it asks and acts through the functions at the end of this file. `params` is
 * the queue pair's copy; never NULL. */
typedef void mango_pcc_algo_fn(void* params);
/* An event-style algorithm: a snapshot in, a decision out. `ctx` is valid until it returns. */
typedef mango_pcc_result_t mango_pcc_algo_event_fn(void* params, const mango_pcc_context_t* ctx);

/* A parameter. REGISTER_UINT32_PARAM() and its like below make them. */
typedef struct _mango_pcc_param {
  const char* name; /* 1 to 64 of A-Z a-z 0-9 _ . -, the first no dot */
  mango_pcc_param_type_e type;
  size_t offset; /* in the block */
} mango_pcc_param_t;

/* `value_ptr` points to a value of `type`, until the callback returns. */
typedef void (*mango_pcc_param_walk_fn)(const char* name, mango_pcc_param_type_e type,
                                        void* value_ptr, void* user_data);

/* What a plugin exports under the name mango_pcc_algo_plugin. All is read once, when it is loaded;
 * the functions must stay callable until it is unloaded. */
typedef struct _mango_pcc_algo_plugin {
  /* 1 to 31 of a-z 0-9 _; no other algorithm's, and not `none`. */
  const char* name MANGO_OR_NULL_;
  /* One line for people; may be NULL. */
  const char* desc MANGO_OR_NULL_;
  /* Makes the block that each queue pair's copy begins as, says how large it is, and registers its
   * parameters in `slot` of `pcc`. NULL, and a size other than 0: it has failed. May be NULL itself
   * for an algorithm without parameters. Of the functions that take a handle only
   * mango_pcc_param_register(), mango_pcc_params_register() and mango_pcc_get_context() may be
   * called with this one; mango_pcc_log() may be too. */
  void* (*init_params)(mango_pcc_h pcc, unsigned int slot, size_t* param_size)MANGO_OR_NULL_;
  /* Gets back what init_params made, when the plugin is unloaded or refused; may be NULL. */
  void (*destroy_params)(void* params) MANGO_OR_NULL_;
  /* One of the two; the second one is used if both are there. */
  mango_pcc_algo_fn* algo_fn MANGO_OR_NULL_;
  mango_pcc_algo_event_fn* algo_event_fn MANGO_OR_NULL_;
  uint32_t required_metrics MANGO_OR_ZERO_; /* mango_pcc_metric_flags_e, of algo_event_fn */
} mango_pcc_algo_plugin_t;

/* Only plugins define it. */
MANGO_API extern const mango_pcc_algo_plugin_t mango_pcc_algo_plugin;

/* A few words for people, never NULL; also for values that are none of the enumeration. */
MANGO_API const char* mango_status_str(mango_status_e status);

/* ---- A handle ---- */

/* Makes the caller the owner of the windows of the device of that name, as `mango-ctl rdma pcc dev`
 * lists them. The mount is found as mango-ctl finds it: $ROCEFS_MOUNT, $SYSFS_PATH, /sys, or the
 * only one there is. NO_DEVICE: there is no mount or no such device in it. BUSY: somebody owns the
 * windows already, or the card's daemon runs an algorithm. NOT_SUPPORTED: the device's time is
 * virtual. PERMISSION, IO: it is there and cannot be talked to. */
MANGO_API mango_status_e mango_pcc_create(const char* roce_dev_name, mango_pcc_h* pcc);
/* Stops what runs, and gives the windows back. The handle is no more: no other call may be under
 * way with it, nor follow. BAD_STATE from within an algorithm. */
MANGO_API mango_status_e mango_pcc_destroy(mango_pcc_h pcc);
/* The same each time, valid until mango_pcc_destroy(); NULL only for NULL. */
MANGO_API mango_context_h mango_pcc_get_context(mango_pcc_h pcc);

/* Also while it runs, at once. INVALID_PARAM: no such option, or the value is out of range. */
MANGO_API mango_status_e mango_pcc_ctrl_config(mango_pcc_h pcc, const mango_pcc_config_t* config);

/* Puts an algorithm into an empty slot, with a copy of `param_size` octets of `initial_params`,
 * which may be NULL if that is 0. Also while another one runs. ALREADY_OPENED: the slot is not
 * empty. LIMIT: the block is too large. */
MANGO_API mango_status_e mango_pcc_ctrl_reg_algo(mango_pcc_h pcc, unsigned int slot,
                                                 mango_pcc_algo_fn* algo,
                                                 const void* initial_params, size_t param_size);
/* Likewise. INVALID_PARAM also for a metric that there is not. */
MANGO_API mango_status_e mango_pcc_ctrl_reg_algo_event(mango_pcc_h pcc, unsigned int slot,
                                                       mango_pcc_algo_event_fn* algo,
                                                       uint32_t required_metrics,
                                                       const void* initial_params,
                                                       size_t param_size);
/* Empties a slot, its parameters included. NOT_FOUND: it is empty. BUSY: it runs on some queue
 * pair, or would on the next one that becomes active. */
MANGO_API mango_status_e mango_pcc_ctrl_unreg_algo(mango_pcc_h pcc, unsigned int slot);
/* The algorithm of these queue pairs; with a NULL list, of all that there are and will be, whatever
 * was said of single ones before. Takes effect at the next call. A queue pair that gets another
 * slot than it had starts with a fresh copy of the parameters, at the window that it has; for one
 * that keeps its slot nothing changes. NOT_FOUND: the slot is empty, or one of the queue pairs is
 * not active. BAD_STATE: a list is given while nothing runs. */
MANGO_API mango_status_e mango_pcc_ctrl_apply_algo(mango_pcc_h pcc, unsigned int slot,
                                                   const unsigned int* qp_list,
                                                   unsigned int qp_count);

/* Starts to call the algorithm that is applied; if none is, the one in the lowest slot. Each queue
 * pair is called for the first time one interval after it was seen; one without a limit gets a
 * window of 512 KiB at once. CFR is off until the run ends. INVALID_PARAM: not 1 to
 * MANGO_PCC_MAX_THREADS. BUSY: it runs already. BAD_STATE: nothing is registered. NO_DEVICE: the
 * device has gone. IO, NOT_SUPPORTED: the device cannot be run this way.
 * A run in which an algorithm writes past its parameters does nothing more until it is stopped, for
 * nobody knows what else was written: no algorithm is called, windows stay as they are, and an
 * ERROR in the daemon's dmesg names the algorithm and the queue pair. */
MANGO_API mango_status_e mango_pcc_ctrl_run(mango_pcc_h pcc, unsigned int num_threads);
/* Returns when no algorithm is being called any more. Windows are without a limit then, or CFR's.
 * NOT_OPENED: nothing runs. */
MANGO_API mango_status_e mango_pcc_ctrl_stop(mango_pcc_h pcc);

/* ---- Parameters ---- */

/* NOT_FOUND: the slot is empty. ALREADY_OPENED: the slot has a parameter of that name, and it
 * stays. INVALID_PARAM: no such type, a bad name, or the value is not wholly inside the block.
 * LIMIT: MANGO_PCC_MAX_PARAMS are registered. */
MANGO_API mango_status_e mango_pcc_param_register(mango_pcc_h pcc, const unsigned int slot,
                                                  const char* name, mango_pcc_param_type_e type,
                                                  size_t offset);
/* Each of the array, in its order, as above. Those that cannot be registered are left out, the
 * others are; the first failure that is not ALREADY_OPENED is returned, else ALREADY_OPENED if
 * there was one. */
MANGO_API mango_status_e mango_pcc_params_register(mango_pcc_h pcc, unsigned int slot,
                                                   const mango_pcc_param_t* params,
                                                   unsigned int nr_params);
/* Calls back for each parameter of the slot, in order of registration. `mode` 1: for each queue
 * pair that the slot runs on, and for the block that new ones begin with; what is written there is
 * in force from the next call on. Otherwise: for the first queue pair alone, or that block if there
 * is none; what is written is lost. No algorithm is called meanwhile. NOT_FOUND: the slot is empty.
 */
MANGO_API mango_status_e mango_pcc_walk_params(mango_pcc_h pcc, const unsigned int slot,
                                               mango_pcc_param_walk_fn callback, void* user_data,
                                               unsigned int mode);

/* ---- Queries: also from within an algorithm; NOT_FOUND: not active, or nothing runs ---- */

/* `qp_list` has room for MANGO_PCC_MAX_QPS. Ascending; none while nothing runs. */
MANGO_API mango_status_e mango_pcc_active_qp_list(mango_pcc_h pcc, uint32_t* qp_list,
                                                  uint32_t* qp_count);
/* CNPs since the run began, or since the queue pair became active if that was later. */
MANGO_API mango_status_e mango_pcc_cnp_count_by_qp(mango_pcc_h pcc, uint32_t qp_num,
                                                   uint64_t* cnp_count);
/* Octets; 0xffffffff: there is no limit. */
MANGO_API mango_status_e mango_pcc_window_current_by_qp(mango_pcc_h pcc, uint32_t qp_num,
                                                        uint32_t* window_size);
/* How often the window was set since the run began, or another slot was applied. */
MANGO_API mango_status_e mango_pcc_window_count_by_qp(mango_pcc_h pcc, uint32_t qp_num,
                                                      uint32_t* count);

/* ---- Only from within an algorithm, of the queue pair that it is called for ---- */

/* Octets that may be in flight. 0 elsewhere. */
MANGO_API unsigned int mango_pcc_window_current(void);
/* In force at once. Less than 1024 is stored as 1024; one packet may be in flight whatever it is.
 * Nothing happens elsewhere. */
MANGO_API void mango_pcc_window_update(unsigned int new_window);
/* CNP: how many came since this was last asked. RTT: the latest in nanoseconds if it is new since
 * this was last asked, else 0; 4294967295 for longer ones. 0 for what an event-style algorithm did
 * not declare, for events that there are not, and elsewhere. */
MANGO_API unsigned int mango_pcc_event_get_val(mango_pcc_event_e event);
/* RTT: measures a round trip, by the next packet that goes. Its answer is seen in a later call. One
 * at a time: another request before the answer is the same one. NOT_SUPPORTED: CNP, or an RTT that
 * the algorithm did not declare. INVALID_PARAM: no such event. BAD_STATE elsewhere. */
MANGO_API mango_status_e mango_pcc_event_request(mango_pcc_event_e event);
/* One line to the device's log, as `[poller N][QP M] …`, unless `level` is beyond the log's. Also
 * from init_params of a plugin, without those. Elsewhere to standard error. */
MANGO_API void mango_pcc_log(mango_log_level_e level, const char* fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* As older revisions of the reference have it. */
static inline unsigned int mango_pcc_event_cnp_cnt(void)
    __attribute__((deprecated("use mango_pcc_event_get_val(MANGO_PCC_EVENT_CNP)")));
static inline unsigned int mango_pcc_event_cnp_cnt(void) {
  return mango_pcc_event_get_val(MANGO_PCC_EVENT_CNP);
}

#ifdef __cplusplus
} /* extern "C" */
#endif

/* ---- Elements of an array of mango_pcc_param_t: a field of another type does not compile ---- */

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
/* Those of the same size that are types of their own. */
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
/* The size of an array that cannot be, unless the field's type is one of those. */
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
