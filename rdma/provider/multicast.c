/* Multicast groups of datagrams. RoCE has no subnet administrator: a group exists while a queue
 * pair is attached. */
#include <string.h>

#include "rdma/provider/rocefs.h"

static int change(uint32_t op, struct ibv_qp* qp, const union ibv_gid* gid) {
  struct rocefs_request request = {.op = op, .u.multicast = {.qp = qp->handle}};
  memcpy(request.u.multicast.gid, gid->raw, sizeof request.u.multicast.gid);
  return rocefs_request(rocefs_context_of(qp->context), &request, NULL);
}

int rocefs_attach_mcast(struct ibv_qp* qp, const union ibv_gid* gid, uint16_t lid) {
  (void)lid;
  return change(ROCEFS_OP_ATTACH_MCAST, qp, gid);
}

int rocefs_detach_mcast(struct ibv_qp* qp, const union ibv_gid* gid, uint16_t lid) {
  (void)lid;
  return change(ROCEFS_OP_DETACH_MCAST, qp, gid);
}
