/* Checks of the engine's answers. The mount belongs to another process, which may be broken: its
 * answers may cost the program its device, but never its memory. */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rdma/provider/rocefs.h"

enum { kMaxTableLen = 4096 }; /* GIDs or keys of a port: programs walk through them */

void rocefs_distrust(struct rocefs_context* context, const char* lie) {
  ROCEFS_UNCANCELLED;
  if (__atomic_exchange_n(&context->connection.broken, 1, __ATOMIC_RELAXED)) return;
  fprintf(stderr, "rocefs: %s: the engine told of %s: the device is given up\n",
          context->verbs.context.device->name, lie);
  /* Wakes threads that wait for an answer or an event. */
  shutdown(context->connection.fd, SHUT_RDWR);
  shutdown(context->verbs.context.async_fd, SHUT_RDWR);
}

bool rocefs_is_eventfd(int fd) {
  static const char kName[] = "anon_inode:[eventfd]";
  char path[32], target[sizeof kName];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(path, target, sizeof target);
  return length == sizeof kName - 1 && memcmp(target, kName, sizeof kName - 1) == 0;
}

bool rocefs_slots_fit(const struct rocefs_created* created, uint64_t offset, uint32_t entries,
                      uint32_t most, size_t slot) {
  if (entries == 0) return true;
  if (entries > most || (entries & (entries - 1))) return false;
  return offset >= sizeof(struct rocefs_qp_page) && offset % 8 == 0 && offset <= created->size &&
         entries * slot <= created->size - offset;
}

bool rocefs_device_can_be(const struct rocefs_device_attr* attr) {
  return attr->max_qp <= ROCEFS_MAX_QUEUES && attr->max_qp_wr <= ROCEFS_MAX_QP_WR &&
         attr->max_sge <= ROCEFS_MAX_SGE && attr->max_inline <= ROCEFS_MAX_INLINE &&
         attr->max_cq <= ROCEFS_MAX_CQ && attr->max_cqe <= ROCEFS_MAX_CQE &&
         attr->max_mr <= ROCEFS_MAX_MR && attr->max_pd <= ROCEFS_MAX_PD &&
         attr->max_srq <= ROCEFS_MAX_QUEUES && attr->max_srq_wr <= ROCEFS_MAX_SRQ_WR &&
         attr->max_rd_atomic <= UINT8_MAX && attr->max_ah <= ROCEFS_MAX_AH &&
         attr->max_mw <= ROCEFS_MAX_MW && attr->max_mcast_attach <= ROCEFS_MAX_MCAST_ATTACH &&
         attr->ports >= 1 && attr->ports <= UINT8_MAX;
}

bool rocefs_port_can_be(const struct rocefs_port_attr* attr) {
  return attr->state <= IBV_PORT_ACTIVE_DEFER && attr->max_mtu >= IBV_MTU_256 &&
         attr->max_mtu <= IBV_MTU_4096 && attr->active_mtu >= IBV_MTU_256 &&
         attr->active_mtu <= attr->max_mtu && attr->gid_table_len <= kMaxTableLen &&
         attr->pkey_table_len <= kMaxTableLen;
}
