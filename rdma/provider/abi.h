/* Private ABI between libibverbs and its providers, versions 34 (rdma-core 37 to 56), 57, 59 and
 * 64.
 *
 * Debian ships no header of it, so the layouts are declared here; only what rocefs uses has a type.
 * The file name of a provider ends in the number of its ABI, and so does the symbol by which it
 * registers: a library of another ABI never loads it. Differences between versions are in slots.c
 * and at the types. */
#ifndef ROCEFS_PROVIDER_ABI_H
#define ROCEFS_PROVIDER_ABI_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
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

enum { VERBS_QP_EX = 2 }; /* ibv_wr_*() are there */
/* End of ibv_qp_ex: wr_abort() at first, then wr_atomic_write() (rdma-core 44), then wr_flush()
 * (45). A program that has not asked for them calls neither, and comp_mask is in one of three
 * places behind wr_abort(): all are set. 0: no ibv_wr_*(). */
struct verbs_qp {
  union {
    struct ibv_qp qp;
    struct ibv_qp_ex qp_ex;
    struct {
      char as_of_rdma_core_37[offsetof(struct ibv_qp_ex, wr_abort) + sizeof(void*)];
      uint64_t comp_masks[3];
    };
  };
  void* xrcd;
};

struct verbs_cq {
  union {
    struct ibv_cq cq;
    struct ibv_cq_ex cq_ex;
  };
};

struct verbs_mr {
  struct ibv_mr ibv_mr;
  int mr_type; /* 0: of ibv_reg_mr() */
  int access;
};

/* Growth of verbs_context at its front since ABI 34, at most, in bytes. */
enum { ROCEFS_MAX_GROWTH = 6 * sizeof(void*) };

/* A verb that a provider serves, in the table that verbs_set_ops() takes. */
typedef void (*verbs_slot)(void);

/* Allocates `size` bytes with a verbs_context at `offset`, a pointer by convention. */
void* _verbs_init_and_alloc_context(struct ibv_device* device, int cmd_fd, size_t size,
                                    struct verbs_context* offset, uint32_t driver_id);
/* NULL keeps the slot's present function: at first libibverbs' own, which answers EOPNOTSUPP. */
void verbs_set_ops(struct verbs_context* context, const verbs_slot* slots);
/* Closes cmd_fd and async_fd too. */
void verbs_uninit_context(struct verbs_context* context);

/* RDMAV_ALLOW_DISASSOC_DESTROY: destruction on a device that has left succeeds. */
extern bool verbs_allow_disassociate_destroy;

/* Shown when VERBS_LOG_LEVEL is at least `level`. */
enum { VERBS_LOG_WARN = 2 };
void __verbs_log(struct verbs_context* context, uint32_t level, const char* format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
