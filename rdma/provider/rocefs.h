/* Objects of the provider. Each begins with libibverbs' own, to which the program has a pointer.
 *
 * Locks, outermost first: context.teardown, connection.mutex; context.teardown, cq.lock; the lock
 * of a work queue is never held with another. */
#ifndef ROCEFS_PROVIDER_ROCEFS_H
#define ROCEFS_PROVIDER_ROCEFS_H

#include <pthread.h>

#include "rdma/provider/abi.h"
#include "rdma/provider/cancel.h"
#include "rdma/provider/connection.h"
#include "rdma/provider/regions.h"
#include "rdma/provider/shared_pages.h"
#include "rdma/uapi/registers.h"
#include "rdma/uapi/uapi.h"

struct rocefs_device {
  struct verbs_device verbs;
  char root[IBV_SYSFS_PATH_MAX]; /* mount point, where sysfs is */
};

/* State of a queue pair that completions update. They name it by number: a pointer in a completion
 * could not be trusted. */
struct rocefs_sends {
  uint64_t cookie; /* 0: no such queue pair */
  uint32_t polled; /* slots of the send queue that polled completions have freed */
  uint8_t apart[52];
};

struct rocefs_context {
  char growth[ROCEFS_MAX_GROWTH]; /* for the verbs_context of newer libraries */
  struct verbs_context verbs;
  struct rocefs_connection connection;
  const struct rocefs_engine_page* engine;
  struct rocefs_context_page* page;
  int doorbell; /* eventfd */
  struct rocefs_device_attr attr;
  uint32_t handles; /* address handles, which the engine does not count */
  /* Held from the destruction of an object until no completion and no event names it, and during
   * the creation of a QP, which may reuse the number of a destroyed one. */
  pthread_mutex_t teardown;
  struct rocefs_sends sends[ROCEFS_MAX_QPS]; /* by number, from ROCEFS_FIRST_QPN */
  struct rocefs_regions regions;
  struct rocefs_page_file page_file;
  struct rocefs_copier* copier; /* NULL: none */
  uint32_t copier_wanted;       /* not 0: requested */
  bool fatal;                   /* the program has been told that the device is lost */
  struct rocefs_context* next;  /* in channel.c's list */
};

struct rocefs_ah {
  struct ibv_ah ibv;
  struct rocefs_address path;
};

/* Ring of requests. The lock sleeps: where cores are few, one that spins may use up the slice of
 * the thread that holds the lock; a free lock costs the same either way. */
struct rocefs_work_queue {
  pthread_mutex_t lock;
  struct rocefs_queue* counters;
  void* slots;
  uint32_t* released; /* slots that may be reused: `polled`, or the engine's count */
  uint32_t entries;   /* 0: no such queue */
  uint32_t max_sge;
  uint32_t doorbell;
  /* SGEs of the newest send request, as in its slot, which the engine may have changed since. */
  uint32_t num_sge;
  struct rocefs_sge sges[ROCEFS_MAX_SGE];
};

enum rocefs_element_kind { ROCEFS_CQ, ROCEFS_QP, ROCEFS_SRQ };

/* Object that events may name. Protected by events.c. */
struct rocefs_element {
  struct rocefs_element* next; /* in its bucket */
  uint64_t cookie;
  enum rocefs_element_kind kind;
  uint32_t completions, asynchronous; /* events that the program has got */
};

struct rocefs_xrcd {
  struct ibv_xrcd ibv;
  uint32_t handle;
};

struct rocefs_srq {
  struct ibv_srq ibv;
  uint32_t number; /* XRC: packets name the queue by it; otherwise 0 */
  struct rocefs_element element;
  void* memory;
  size_t size;
  struct rocefs_work_queue receive;
};

struct rocefs_qp {
  struct verbs_qp verbs;
  struct rocefs_element element;
  void* memory;
  size_t size;
  struct rocefs_work_queue send;
  struct rocefs_work_queue receive;
  struct ibv_qp_cap cap;
  int sq_sig_all;
  /* State from ibv_wr_start() to ibv_wr_complete() or ibv_wr_abort(), under the lock of `send`. */
  struct {
    uint32_t count, room;
    int error;                   /* first error; later requests are written to `spare` */
    struct rocefs_send_wqe* wqe; /* newest request */
    struct rocefs_send_wqe spare;
  } build;
};

struct rocefs_cq {
  struct verbs_cq verbs;
  struct rocefs_element element;
  pthread_mutex_t lock;      /* of all members below */
  struct rocefs_cqe current; /* from ibv_start_poll() to ibv_end_poll() */
  uint32_t next;             /* from ibv_start_poll() to ibv_end_poll(): the next one to take */
  struct rocefs_cq_page* page;
  size_t size;
  struct rocefs_cqe* entries;
  uint32_t mask;
  uint64_t channel; /* 0: none */
};

#define ROCEFS_CONTAINER(pointer, type, member) \
  ((type*)(void*)((char*)(pointer)-offsetof(type, member)))
static inline struct rocefs_context* rocefs_context_of(struct ibv_context* context) {
  return ROCEFS_CONTAINER(context, struct rocefs_context, verbs.context);
}
static inline struct rocefs_qp* rocefs_qp_of(struct ibv_qp* qp) {
  return ROCEFS_CONTAINER(qp, struct rocefs_qp, verbs.qp);
}
static inline struct rocefs_cq* rocefs_cq_of(struct ibv_cq* cq) {
  return ROCEFS_CONTAINER(cq, struct rocefs_cq, verbs.cq);
}
static inline struct rocefs_srq* rocefs_srq_of(struct ibv_srq* srq) {
  return ROCEFS_CONTAINER(srq, struct rocefs_srq, ibv);
}

/* ---- device.c ---- */

extern const struct verbs_device_ops rocefs_device_ops;

/* ---- context.c ---- */

struct verbs_context* rocefs_alloc_context(struct ibv_device* device, int cmd_fd,
                                           void* private_data);
void rocefs_free_context(struct ibv_context* context);
void rocefs_async_event(struct ibv_context* context, struct ibv_async_event* event);
void rocefs_cq_event(struct ibv_cq* cq);
/* Reads the name of the process, which is that of its first thread. */
void rocefs_read_comm(char* comm, size_t size);
/* True in a child of fork() of the process that made the context. The child shares the socket, but
 * does not have the memory, and a lock may be held by a thread that it does not have. */
bool rocefs_is_foreign(const struct rocefs_context* context);
/* True if the engine does not serve this context any more: it has died, or the device has left. */
static inline bool rocefs_is_gone(const struct rocefs_context* context) {
  return __atomic_load_n(&context->connection.broken, __ATOMIC_RELAXED) ||
         __atomic_load_n(&context->page->gone, __ATOMIC_ACQUIRE);
}
/* Sends one request and waits for its answer; returns an errno. `answer` may be NULL. */
int rocefs_request(struct rocefs_context* context, struct rocefs_request* request,
                   struct rocefs_answer* answer);
/* As rocefs_request(), with descriptors; see rocefs_exchange(). */
int rocefs_request_passing(struct rocefs_context* context, struct rocefs_request* request,
                           int passed, struct rocefs_answer* answer, int* received, unsigned count);
/* Result of the destruction of an object: `error`, or 0 where libibverbs overlooks errors because
 * the device has left. */
int rocefs_destroy_error(const struct rocefs_context* context, int error);
/* Maps memory of the engine and closes the descriptor. A child of fork() does not get the mapping:
 * two processes behind one ring would corrupt it. NULL and errno on failure; a descriptor of -1 is
 * a missing one. EPROTO: access might raise SIGBUS. */
void* rocefs_map(int fd, size_t size, int protection);

/* ---- answers.c ---- */

/* Marks the device of an engine that has sent something impossible as gone. Logs once. */
void rocefs_distrust(struct rocefs_context* context, const char* lie);
/* True for an eventfd: a write to another file may raise a signal. */
bool rocefs_is_eventfd(int fd);
/* True if slots of that size lie within the memory, behind its counters. 0 entries need no room. */
bool rocefs_slots_fit(const struct rocefs_created* created, uint64_t offset, uint32_t entries,
                      uint32_t most, size_t slot);
bool rocefs_device_can_be(const struct rocefs_device_attr* attr);
bool rocefs_port_can_be(const struct rocefs_port_attr* attr);

/* ---- device_attr.c ---- */

int rocefs_query_device_ex(struct ibv_context* context,
                           const struct ibv_query_device_ex_input* input,
                           struct ibv_device_attr_ex* attr, size_t size);
int rocefs_query_port(struct ibv_context* context, uint8_t port, struct ibv_port_attr* attr);
/* The clock of completions, CLOCK_MONOTONIC. */
int rocefs_query_rt_values(struct ibv_context* context, struct ibv_values_ex* values);
/* In units of 100 Mbit/s. */
int rocefs_query_port_speed(struct ibv_context* context, uint32_t port, uint64_t* speed);

/* ---- domains.c ---- */

/* Counts address handles of a domain, which the engine does not know: one more, or one less. */
void rocefs_count_handle(struct ibv_pd* pd, int change);
/* Counts any other object of a parent domain, which the engine does not know either. */
void rocefs_count_object(struct ibv_pd* pd, int change);
struct ibv_pd* rocefs_alloc_pd(struct ibv_context* context);
int rocefs_dealloc_pd(struct ibv_pd* pd);
struct ibv_td* rocefs_alloc_td(struct ibv_context* context, struct ibv_td_init_attr* attr);
int rocefs_dealloc_td(struct ibv_td* td);
struct ibv_pd* rocefs_alloc_parent_domain(struct ibv_context* context,
                                          struct ibv_parent_domain_init_attr* attr);

/* ---- dm.c ---- */

struct ibv_dm* rocefs_alloc_dm(struct ibv_context* context, struct ibv_alloc_dm_attr* attr);
int rocefs_free_dm(struct ibv_dm* dm);

/* ---- memory.c ---- */

struct ibv_mr* rocefs_reg_dm_mr(struct ibv_pd* pd, struct ibv_dm* dm, uint64_t offset,
                                size_t length, unsigned access);
struct ibv_mr* rocefs_reg_mr(struct ibv_pd* pd, void* address, size_t length, uint64_t iova,
                             int access);
int rocefs_rereg_mr(struct verbs_mr* mr, int flags, struct ibv_pd* pd, void* address, size_t length,
                    int access);
int rocefs_dereg_mr(struct verbs_mr* mr);
int rocefs_advise_mr(struct ibv_pd* pd, enum ibv_advise_mr_advice advice, uint32_t flags,
                     struct ibv_sge* list, uint32_t count);

/* ---- copier.c ---- */

/* Requests a copy thread in this program if a region of this size is worth it. */
void rocefs_want_copier(struct rocefs_context* context, size_t length);
/* Waits until the thread has ended: it moves no memory of the program after that. */
void rocefs_end_copier(struct rocefs_context* context);

/* ---- ah.c ---- */

struct ibv_ah* rocefs_create_ah(struct ibv_pd* pd, struct ibv_ah_attr* attr);
int rocefs_destroy_ah(struct ibv_ah* ah);
void rocefs_address_from_ah(struct rocefs_address* address, const struct ibv_ah_attr* attr);
void rocefs_address_to_ah(const struct rocefs_address* address, struct ibv_ah_attr* attr);

/* ---- cq.c ---- */

struct ibv_cq* rocefs_create_cq(struct ibv_context* context, int cqe,
                                struct ibv_comp_channel* channel, int comp_vector);
/* Likewise; `stamped`: its completions have time stamps. */
struct ibv_cq* rocefs_make_cq(struct ibv_context* context, int cqe,
                              struct ibv_comp_channel* channel, int comp_vector, bool stamped);
int rocefs_destroy_cq(struct ibv_cq* cq);
int rocefs_resize_cq(struct ibv_cq* cq, int cqe);
int rocefs_poll_cq(struct ibv_cq* cq, int count, struct ibv_wc* wc);
int rocefs_req_notify_cq(struct ibv_cq* cq, int solicited_only);
/* Removes completions of a QP that are not polled yet. */
void rocefs_clean_cq(struct ibv_cq* cq, uint32_t qpn);

/* Number of completions from `next` on. The lock is held, here and below. */
uint32_t rocefs_count_completions(struct rocefs_cq* cq, uint32_t next);
/* Copies one completion; the slots that it frees may be posted to again. False for an impossible
 * one. */
bool rocefs_take_completion(struct rocefs_cq* cq, uint32_t next, struct rocefs_cqe* cqe);

/* ---- cq_ex.c ---- */

struct ibv_cq_ex* rocefs_create_cq_ex(struct ibv_context* context,
                                      struct ibv_cq_init_attr_ex* attr);

/* ---- idle.c ---- */

/* Activity of the calling thread: it has polled or posted something, or has polled in vain. The
 * latter returns true when the thread has waited, and should poll again. */
void rocefs_thread_is_busy(void);
bool rocefs_thread_is_idle(struct rocefs_cq* cq);

/* ---- qp.c ---- */

struct ibv_qp* rocefs_create_qp(struct ibv_pd* pd, struct ibv_qp_init_attr* attr);
struct ibv_qp* rocefs_create_qp_ex(struct ibv_context* context, struct ibv_qp_init_attr_ex* attr);
struct ibv_qp* rocefs_open_qp(struct ibv_context* context, struct ibv_qp_open_attr* attr);
int rocefs_modify_qp(struct ibv_qp* qp, struct ibv_qp_attr* attr, int mask);
int rocefs_query_qp(struct ibv_qp* qp, struct ibv_qp_attr* attr, int mask,
                    struct ibv_qp_init_attr* init_attr);
int rocefs_destroy_qp(struct ibv_qp* qp);

/* ---- qp_attr.c ---- */

/* Converts the attributes that `mask` names; others are neither read nor written. */
void rocefs_qp_attr_from_verbs(struct rocefs_qp_attr* out, const struct ibv_qp_attr* in, int mask);
void rocefs_qp_attr_to_verbs(const struct rocefs_qp_attr* in, struct ibv_qp_attr* out);

/* ---- srq.c ---- */

struct ibv_srq* rocefs_create_srq(struct ibv_pd* pd, struct ibv_srq_init_attr* attr);
int rocefs_modify_srq(struct ibv_srq* srq, struct ibv_srq_attr* attr, int mask);
int rocefs_query_srq(struct ibv_srq* srq, struct ibv_srq_attr* attr);
int rocefs_destroy_srq(struct ibv_srq* srq);
int rocefs_post_srq_recv(struct ibv_srq* srq, struct ibv_recv_wr* wr, struct ibv_recv_wr** bad);

struct ibv_srq* rocefs_create_srq_ex(struct ibv_context* context,
                                     struct ibv_srq_init_attr_ex* attr);
int rocefs_get_srq_num(struct ibv_srq* srq, uint32_t* number);

/* ---- xrc.c ---- */

struct ibv_xrcd* rocefs_open_xrcd(struct ibv_context* context, struct ibv_xrcd_init_attr* attr);
int rocefs_close_xrcd(struct ibv_xrcd* xrcd);
static inline uint32_t rocefs_xrcd_handle(struct ibv_xrcd* xrcd) {
  return ROCEFS_CONTAINER(xrcd, struct rocefs_xrcd, ibv)->handle;
}

/* ---- work_queue.c ---- */

void rocefs_init_queue(struct rocefs_work_queue* queue, struct rocefs_queue* counters, void* slots,
                       uint32_t entries, uint32_t max_sge, uint32_t doorbell);
/* Number of free slots; the lock is held. */
uint32_t rocefs_free_slots(const struct rocefs_work_queue* queue);
/* Wakes the engine if it sleeps, so that it reads earlier stores. */
void rocefs_wake_engine(const struct rocefs_context* context);
/* Publishes requests and rings the doorbell; the lock is held. */
void rocefs_publish(struct rocefs_context* context, struct rocefs_work_queue* queue,
                    uint32_t count);
/* Posts receive requests; returns an errno, with those before *bad posted. */
int rocefs_post_receives(struct rocefs_context* context, struct rocefs_work_queue* queue,
                         struct ibv_recv_wr* wr, struct ibv_recv_wr** bad);

/* ---- post.c ---- */

int rocefs_post_send(struct ibv_qp* qp, struct ibv_send_wr* wr, struct ibv_send_wr** bad);
int rocefs_post_recv(struct ibv_qp* qp, struct ibv_recv_wr* wr, struct ibv_recv_wr** bad);

/* Checks that the queue pair's state allows send requests: 0 or an errno. */
int rocefs_may_send(const struct ibv_qp* qp);
/* Writes the entries of the newest request, at most as many as a slot holds. */
void rocefs_write_sges(struct rocefs_work_queue* queue, struct rocefs_send_wqe* wqe,
                       const struct ibv_sge* list, uint32_t count);
/* Copies the bytes of the one request that is about to be published into its slot, if they are few
 * and can be read, and no request in progress may still write them. The lock is held. */
void rocefs_copy_little(const struct rocefs_context* context, struct rocefs_work_queue* queue);

/* ---- operations.c ---- */

/* Whether the service has that ibv_wr_opcode. */
bool rocefs_has_operation(enum ibv_qp_type type, unsigned opcode);
/* Whether it has the trait, of rocefs_operation_traits; an unknown opcode has none. */
bool rocefs_operation_has(unsigned opcode, unsigned trait);
/* Flags of ibv_qp_create_send_ops_flags: the ibv_wr_*() of that service. */
uint64_t rocefs_builders_of(enum ibv_qp_type type);
/* Flags of ibv_device_attr_ex's device_cap_flags_ex that operations stand for. */
uint64_t rocefs_capabilities(void);
/* Whether a completion may have that ibv_wc_opcode. */
bool rocefs_completes_with(uint32_t opcode);

/* ---- builder.c ---- */

/* Sets up ibv_wr_*() of a queue pair. */
void rocefs_init_builder(struct rocefs_qp* qp, uint64_t operations);

/* ---- window.c ---- */

struct ibv_mw* rocefs_alloc_mw(struct ibv_pd* pd, enum ibv_mw_type type);
int rocefs_dealloc_mw(struct ibv_mw* mw);
int rocefs_bind_mw(struct ibv_qp* qp, struct ibv_mw* mw, struct ibv_mw_bind* bind);
/* Writes the part of a bind request that describes the binding; returns an errno. */
int rocefs_write_bind(struct rocefs_send_wqe* wqe, const struct ibv_mw* mw, uint32_t rkey,
                      const struct ibv_mw_bind_info* info);

/* ---- multicast.c ---- */

int rocefs_attach_mcast(struct ibv_qp* qp, const union ibv_gid* gid, uint16_t lid);
int rocefs_detach_mcast(struct ibv_qp* qp, const union ibv_gid* gid, uint16_t lid);

/* ---- channel.c ---- */

/* Provides ibv_create_comp_channel() for a context, while the context exists; returns an errno. */
int rocefs_add_channels(struct rocefs_context* context);
void rocefs_remove_channels(struct rocefs_context* context);
/* Context of that device file; NULL if there is none. */
struct rocefs_context* rocefs_context_of_file(int cmd_fd);
/* Context whose asynchronous events are read from `fd`; NULL if there is none. */
struct rocefs_context* rocefs_context_of_events(int fd);
/* Name of the channel that is read from `fd`; 0 if there is none. */
uint64_t rocefs_channel_name(int fd);

/* ---- got.c ---- */

/* Redirects a library's own calls of a function to `hook`; idempotent; returns an errno. `library`
 * is the beginning of its file name; NULL: libibverbs. */
int rocefs_hook(const char* library, const char* function, uintptr_t hook);

/* ---- gids.c ---- */

/* Lets ibv_query_gid_ex() and ibv_query_gid_table() work where the program has no network
 * interface of the device's name. */
void rocefs_answer_gid_queries(void);

/* ---- cm.c ---- */

/* Lets librdmacm work on the engine whose tree is at `root`, if librdmacm is loaded. */
void rocefs_serve_cm(const char* root);

/* ---- events.c ---- */

/* Filters the events that libibverbs reads: only those of existing objects remain; returns an
 * errno. */
int rocefs_watch_events(void);
/* Waits for threads that take an event, and may have found a context which is in no list now. */
void rocefs_await_takers(void);
/* Lets events name an object, with its address as cookie. */
void rocefs_expect_events(struct rocefs_element* element, enum rocefs_element_kind kind,
                          const void* object);
/* Removes the events of an object that is being destroyed from a socket. `channel` is 0 for the
 * socket of asynchronous events. The caller holds context.teardown. */
void rocefs_drop_events(struct rocefs_context* context, int fd, uint64_t channel,
                        const struct rocefs_element* element);
/* Ends rocefs_expect_events(), after rocefs_drop_events() or where no event was sent. The counts of
 * the element do not change any more. */
void rocefs_expect_no_events(struct rocefs_element* element);
/* Waits until the program has acknowledged `expected` events: ibv_ack_*_events() needs their
 * object. */
void rocefs_await_acknowledged(pthread_mutex_t* acknowledging, pthread_cond_t* cond,
                               const uint32_t* completed, uint32_t expected);

#endif
