/* Memory windows. Type 1: bound by ibv_bind_mw(), and open to the whole protection domain. Type 2:
 * bound by a request, and open to the queue pair of that request alone (type 2B). */
#include <errno.h>
#include <stdlib.h>

#include "rdma/provider/rocefs.h"

struct ibv_mw* rocefs_alloc_mw(struct ibv_pd* pd, enum ibv_mw_type type) {
  struct rocefs_request request = {.op = ROCEFS_OP_ALLOC_MW,
                                   .u.alloc_mw = {.pd = pd->handle, .type = type}};
  struct rocefs_answer answer;
  struct ibv_mw* mw = calloc(1, sizeof *mw);
  if (!mw) return NULL;
  int error = rocefs_request(rocefs_context_of(pd->context), &request, &answer);
  if (error) {
    free(mw);
    errno = error;
    return NULL;
  }
  rocefs_count_object(pd, 1);
  mw->context = pd->context;
  mw->pd = pd;
  mw->type = type;
  mw->handle = answer.u.mr.handle;
  mw->rkey = answer.u.mr.rkey;
  return mw;
}

int rocefs_dealloc_mw(struct ibv_mw* mw) {
  struct rocefs_context* context = rocefs_context_of(mw->context);
  struct rocefs_request request = {.op = ROCEFS_OP_DEALLOC_MW, .u.handle = mw->handle};
  int error = rocefs_destroy_error(context, rocefs_request(context, &request, NULL));
  if (error) return error;
  rocefs_count_object(mw->pd, -1);
  free(mw);
  return 0;
}

int rocefs_write_bind(struct rocefs_send_wqe* wqe, const struct ibv_mw* mw, uint32_t rkey,
                      const struct ibv_mw_bind_info* info) {
  /* Only a type 2 window may be zero based, as with mlx5 and rxe. */
  const unsigned rights = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                          IBV_ACCESS_REMOTE_ATOMIC |
                          (mw->type == IBV_MW_TYPE_2 ? IBV_ACCESS_ZERO_BASED : 0);
  /* As of mlx5 and rxe: a local right is taken, and says nothing of a window. */
  if (info->mw_access_flags & ~(rights | IBV_ACCESS_LOCAL_WRITE)) return EINVAL;
  if (info->length > UINT32_MAX || (info->length > 0 && !info->mr)) return EINVAL;
  wqe->rkey = (mw->rkey & ~UINT32_C(0xff)) | (rkey & 0xff); /* the index is the window's */
  wqe->immediate = info->mw_access_flags & rights;
  wqe->num_sge = 1;
  wqe->u.sges[0] =
      (struct rocefs_sge){info->addr, (uint32_t)info->length, info->mr ? info->mr->lkey : 0};
  return 0;
}

/* Type 1: each binding has a new key, known when it is posted; ibv_bind_mw(3). */
int rocefs_bind_mw(struct ibv_qp* ibv, struct ibv_mw* mw, struct ibv_mw_bind* bind) {
  struct rocefs_qp* qp = rocefs_qp_of(ibv);
  struct rocefs_work_queue* queue = &qp->send;
  struct rocefs_send_wqe* slots = queue->slots;
  uint32_t rkey = ibv_inc_rkey(mw->rkey);
  int error = rocefs_may_send(ibv);
  if (error) return error;
  if (!rocefs_has_operation(ibv->qp_type, ROCEFS_WR_BIND_MW)) return EINVAL;
  if (bind->send_flags & ~(unsigned)(IBV_SEND_FENCE | IBV_SEND_SIGNALED)) return EINVAL;
  pthread_mutex_lock(&queue->lock);
  struct rocefs_send_wqe* wqe = &slots[queue->counters->posted & (queue->entries - 1)];
  if (rocefs_free_slots(queue) == 0)
    error = ENOMEM;
  else
    error = rocefs_write_bind(wqe, mw, rkey, &bind->bind_info);
  if (!error) {
    wqe->wr_id = bind->wr_id;
    wqe->opcode = ROCEFS_WR_BIND_MW;
    wqe->flags = bind->send_flags | (qp->sq_sig_all ? ROCEFS_SEND_SIGNALED : 0);
    rocefs_publish(rocefs_context_of(ibv->context), queue, 1);
    mw->rkey = rkey;
  }
  pthread_mutex_unlock(&queue->lock);
  return error;
}
