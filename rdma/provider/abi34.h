/* What libibverbs and its providers say to each other under private ABI 34 (rdma-core 37 to 56).
 *
 * Debian ships no header of it, so the layouts stand here; only what rocefs uses has a type. The
 * file name of a provider ends in the number of its ABI, and so does the symbol by which it
 * registers: a library that does not know this ABI never loads it.
 */
#ifndef ROCEFS_PROVIDER_ABI34_H
#define ROCEFS_PROVIDER_ABI34_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

struct verbs_match_ent;

struct list_node {
  struct list_node *next, *prev;
};

/* A device that libibverbs has found in sysfs. */
struct verbs_sysfs_dev {
  struct list_node entry;
  void* provider_data;
  const struct verbs_match_ent* match;
  unsigned int flags;
  char sysfs_name[IBV_SYSFS_NAME_MAX];
  dev_t sysfs_cdev;
  char ibdev_name[IBV_SYSFS_NAME_MAX];
  char ibdev_path[IBV_SYSFS_PATH_MAX]; /* <sysfs>/class/infiniband/<ibdev_name> */
  char modalias[512];
  uint64_t node_guid;
  uint32_t driver_id;
  enum ibv_node_type node_type;
  int ibdev_idx;
  uint32_t num_ports;
  uint32_t abi_ver;
  struct timespec time_created;
};

struct verbs_device;

struct verbs_device_ops {
  const char* name;
  uint32_t match_min_abi_version;
  uint32_t match_max_abi_version;
  const struct verbs_match_ent* match_table;
  const struct verbs_device_ops** static_providers;
  bool (*match_device)(struct verbs_sysfs_dev* sysfs_dev);
  /* Owns cmd_fd from the call on, also when it fails. */
  struct verbs_context* (*alloc_context)(struct ibv_device* device, int cmd_fd, void* private_data);
  struct verbs_context* (*import_context)(struct ibv_device* device, int cmd_fd);
  struct verbs_device* (*alloc_device)(struct verbs_sysfs_dev* sysfs_dev);
  void (*uninit_device)(struct verbs_device* device);
};

struct verbs_device {
  struct ibv_device device;
  const struct verbs_device_ops* ops;
  int refcount;
  struct list_node entry;
  struct verbs_sysfs_dev* sysfs;
  uint64_t core_support; /* 0: libibverbs itself drops optional access flags */
};

struct verbs_qp {
  union {
    struct ibv_qp qp;
    struct ibv_qp_ex qp_ex;
  };
  uint32_t comp_mask; /* 0: no ibv_wr_*() */
};

struct verbs_mr {
  struct ibv_mr ibv_mr;
  int mr_type; /* 0: of ibv_reg_mr() */
  int access;
};

/* The verbs that a provider may serve, in alphabetic order. A slot left NULL keeps libibverbs' own
 * answer, EOPNOTSUPP. */
typedef void (*verbs_unused)(void);
struct verbs_context_ops {
  verbs_unused advise_mr, alloc_dm, alloc_mw, alloc_null_mr, alloc_parent_domain;
  struct ibv_pd* (*alloc_pd)(struct ibv_context* context);
  verbs_unused alloc_td;
  void (*async_event)(struct ibv_context* context, struct ibv_async_event* event);
  verbs_unused attach_counters_point_flow, attach_mcast, bind_mw, close_xrcd;
  void (*cq_event)(struct ibv_cq* cq);
  struct ibv_ah* (*create_ah)(struct ibv_pd* pd, struct ibv_ah_attr* attr);
  verbs_unused create_counters;
  struct ibv_cq* (*create_cq)(struct ibv_context* context, int cqe,
                              struct ibv_comp_channel* channel, int comp_vector);
  verbs_unused create_cq_ex, create_flow, create_flow_action_esp;
  struct ibv_qp* (*create_qp)(struct ibv_pd* pd, struct ibv_qp_init_attr* attr);
  verbs_unused create_qp_ex, create_rwq_ind_table;
  struct ibv_srq* (*create_srq)(struct ibv_pd* pd, struct ibv_srq_init_attr* attr);
  verbs_unused create_srq_ex, create_wq, dealloc_mw;
  int (*dealloc_pd)(struct ibv_pd* pd);
  verbs_unused dealloc_td;
  int (*dereg_mr)(struct verbs_mr* mr);
  int (*destroy_ah)(struct ibv_ah* ah);
  verbs_unused destroy_counters;
  int (*destroy_cq)(struct ibv_cq* cq);
  verbs_unused destroy_flow, destroy_flow_action;
  int (*destroy_qp)(struct ibv_qp* qp);
  verbs_unused destroy_rwq_ind_table;
  int (*destroy_srq)(struct ibv_srq* srq);
  verbs_unused destroy_wq, detach_mcast;
  void (*free_context)(struct ibv_context* context);
  verbs_unused free_dm, get_srq_num, import_dm, import_mr, import_pd, modify_cq,
      modify_flow_action_esp;
  int (*modify_qp)(struct ibv_qp* qp, struct ibv_qp_attr* attr, int mask);
  verbs_unused modify_qp_rate_limit;
  int (*modify_srq)(struct ibv_srq* srq, struct ibv_srq_attr* attr, int mask);
  verbs_unused modify_wq, open_qp, open_xrcd;
  int (*poll_cq)(struct ibv_cq* cq, int count, struct ibv_wc* wc);
  int (*post_recv)(struct ibv_qp* qp, struct ibv_recv_wr* wr, struct ibv_recv_wr** bad);
  int (*post_send)(struct ibv_qp* qp, struct ibv_send_wr* wr, struct ibv_send_wr** bad);
  verbs_unused post_srq_ops;
  int (*post_srq_recv)(struct ibv_srq* srq, struct ibv_recv_wr* wr, struct ibv_recv_wr** bad);
  int (*query_device_ex)(struct ibv_context* context, const struct ibv_query_device_ex_input* input,
                         struct ibv_device_attr_ex* attr, size_t size);
  verbs_unused query_ece;
  int (*query_port)(struct ibv_context* context, uint8_t port, struct ibv_port_attr* attr);
  int (*query_qp)(struct ibv_qp* qp, struct ibv_qp_attr* attr, int mask,
                  struct ibv_qp_init_attr* init_attr);
  verbs_unused query_qp_data_in_order, query_rt_values;
  int (*query_srq)(struct ibv_srq* srq, struct ibv_srq_attr* attr);
  verbs_unused read_counters, reg_dm_mr, reg_dmabuf_mr;
  struct ibv_mr* (*reg_mr)(struct ibv_pd* pd, void* address, size_t length, uint64_t iova,
                           int access);
  int (*req_notify_cq)(struct ibv_cq* cq, int solicited_only);
  verbs_unused rereg_mr, resize_cq, set_ece, unimport_dm, unimport_mr, unimport_pd;
};
_Static_assert(sizeof(struct verbs_context_ops) == 76 * sizeof(void*), "ABI 34 has 76 verbs");

void verbs_register_driver_34(const struct verbs_device_ops* ops);

/* Allocates `size` bytes with a verbs_context at `offset`, a pointer by convention. */
void* _verbs_init_and_alloc_context(struct ibv_device* device, int cmd_fd, size_t size,
                                    struct verbs_context* offset, uint32_t driver_id);
void verbs_set_ops(struct verbs_context* context, const struct verbs_context_ops* ops);
/* Closes cmd_fd and async_fd too. */
void verbs_uninit_context(struct verbs_context* context);

/* RDMAV_ALLOW_DISASSOC_DESTROY: what is destroyed on a device that has left counts as destroyed. */
extern bool verbs_allow_disassociate_destroy;

/* Shown when VERBS_LOG_LEVEL is at least `level`. */
enum { VERBS_LOG_WARN = 2 };
void __verbs_log(struct verbs_context* context, uint32_t level, const char* format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
