/* Posting to a queue pair. */
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "rdma/provider/rocefs.h"

enum {
  kFlags = ROCEFS_SEND_FENCE | ROCEFS_SEND_SIGNALED | ROCEFS_SEND_SOLICITED | ROCEFS_SEND_INLINE,
};

/* Copies inline data into the slot, which is not published yet. */
static int write_inline(const struct rocefs_qp* qp, struct rocefs_send_wqe* wqe,
                        const struct ibv_send_wr* wr) {
  uint32_t length = 0;
  if (!rocefs_operation_has(wr->opcode, ROCEFS_PAYLOAD)) return EINVAL;
  for (int i = 0; i < wr->num_sge; ++i) {
    const struct ibv_sge* sge = &wr->sg_list[i];
    if (sge->length > qp->cap.max_inline_data - length) return EINVAL;
    memcpy(wqe->u.inline_data + length, (const void*)(uintptr_t)sge->addr, sge->length);
    length += sge->length;
  }
  wqe->num_sge = length;
  return 0;
}

void rocefs_write_sges(struct rocefs_work_queue* queue, struct rocefs_send_wqe* wqe,
                       const struct ibv_sge* list, uint32_t count) {
  wqe->num_sge = queue->num_sge = count;
  for (uint32_t i = 0; i < count; ++i)
    wqe->u.sges[i] = queue->sges[i] =
        (struct rocefs_sge){list[i].addr, list[i].length, list[i].lkey};
}

/* Meaning of wr->wr, by transport and operation. */
static int write_target(struct rocefs_send_wqe* wqe, const struct ibv_send_wr* wr,
                        enum ibv_qp_type type) {
  if (type == IBV_QPT_XRC_SEND) wqe->srqn = wr->qp_type.xrc.remote_srqn;
  if (type == IBV_QPT_UD) {
    if (!wr->wr.ud.ah) return EINVAL;
    wqe->remote_qpn = wr->wr.ud.remote_qpn;
    wqe->qkey = wr->wr.ud.remote_qkey;
    wqe->path = ROCEFS_CONTAINER(wr->wr.ud.ah, struct rocefs_ah, ibv)->path;
  } else if (rocefs_operation_has(wr->opcode, ROCEFS_ATOMIC_RESPONSE)) {
    wqe->remote_address = wr->wr.atomic.remote_addr;
    wqe->rkey = wr->wr.atomic.rkey;
    wqe->compare_add = wr->wr.atomic.compare_add;
    wqe->swap = wr->wr.atomic.swap;
  } else {
    wqe->remote_address = wr->wr.rdma.remote_addr;
    wqe->rkey = wr->wr.rdma.rkey;
  }
  return 0;
}

void rocefs_copy_little(const struct rocefs_context* context, struct rocefs_work_queue* queue) {
  struct rocefs_send_wqe* wqe = queue->slots;
  struct iovec from[ROCEFS_MAX_SGE], to = {.iov_len = 0};
  uint32_t next = queue->counters->posted;
  if (__atomic_load_n(&queue->counters->released, __ATOMIC_ACQUIRE) != next) return;
  wqe += next & (queue->entries - 1);
  if (!rocefs_operation_has(wqe->opcode, ROCEFS_PAYLOAD) || (wqe->flags & ROCEFS_SEND_INLINE))
    return;
  for (uint32_t i = 0; i < queue->num_sge; ++i) {
    const struct rocefs_sge* sge = &queue->sges[i];
    if (sge->length > ROCEFS_MAX_COPIED - to.iov_len) return;
    from[i] = (struct iovec){(void*)(uintptr_t)sge->address, sge->length};
    to.iov_len += sge->length;
  }
  if (to.iov_len == 0) return;
  to.iov_base = wqe->u.copied;
  /* process_vm_readv(), not memcpy(): unreadable memory fails the request, not the program. */
  ssize_t copied = process_vm_readv(context->connection.owner, &to, 1, from, queue->num_sge, 0);
  if (copied == (ssize_t)to.iov_len) wqe->flags |= ROCEFS_SEND_COPIED;
}

static int write_send(struct rocefs_qp* qp, struct rocefs_send_wqe* wqe,
                      const struct ibv_send_wr* wr) {
  enum ibv_qp_type type = qp->verbs.qp.qp_type;
  if (!rocefs_has_operation(type, wr->opcode)) return EINVAL;
  if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->send.max_sge) return EINVAL;
  wqe->wr_id = wr->wr_id;
  wqe->opcode = (uint32_t)wr->opcode;
  wqe->flags = wr->send_flags & kFlags;
  if (qp->sq_sig_all) wqe->flags |= ROCEFS_SEND_SIGNALED;
  qp->send.num_sge = 0;
  if (rocefs_operation_has(wr->opcode, ROCEFS_IMMEDIATE))
    wqe->immediate = be32toh(wr->imm_data);
  else if (rocefs_operation_has(wr->opcode, ROCEFS_INVALIDATES))
    wqe->immediate = wr->invalidate_rkey;
  else
    wqe->immediate = 0;
  if (wr->opcode == IBV_WR_BIND_MW) {
    struct ibv_mw* mw = wr->bind_mw.mw;
    if (!mw || mw->type != IBV_MW_TYPE_2) return EINVAL;
    int error = rocefs_write_bind(wqe, mw, wr->bind_mw.rkey, &wr->bind_mw.bind_info);
    if (!error) mw->rkey = wqe->rkey; /* the window has the key that it is being bound with */
    return error;
  }
  if (wr->send_flags & IBV_SEND_INLINE) {
    int error = write_inline(qp, wqe, wr);
    if (error) return error;
  } else {
    rocefs_write_sges(&qp->send, wqe, wr->sg_list, (uint32_t)wr->num_sge);
  }
  return write_target(wqe, wr, type);
}

int rocefs_may_send(const struct ibv_qp* qp) {
  if (rocefs_is_gone(rocefs_context_of(qp->context))) return EIO;
  if (!qp->send_cq) return EINVAL; /* receives for XRC */
  enum ibv_qp_state state = qp->state;
  return state == IBV_QPS_RESET || state == IBV_QPS_INIT || state == IBV_QPS_RTR ? EINVAL : 0;
}

int rocefs_post_send(struct ibv_qp* ibv, struct ibv_send_wr* wr, struct ibv_send_wr** bad) {
  struct rocefs_context* context = rocefs_context_of(ibv->context);
  struct rocefs_qp* qp = rocefs_qp_of(ibv);
  struct rocefs_work_queue* queue = &qp->send;
  struct rocefs_send_wqe* slots = queue->slots;
  uint32_t count = 0;
  int error = rocefs_may_send(ibv);
  if (error) {
    *bad = wr;
    return error;
  }
  pthread_mutex_lock(&queue->lock);
  uint32_t next = queue->counters->posted, room = rocefs_free_slots(queue);
  for (; wr; wr = wr->next, ++count) {
    error =
        count == room ? ENOMEM : write_send(qp, &slots[(next + count) & (queue->entries - 1)], wr);
    if (error) break;
  }
  /* After an error the SGEs are those of the request that was refused. */
  if (!error && count == 1) rocefs_copy_little(context, queue);
  rocefs_publish(context, queue, count);
  pthread_mutex_unlock(&queue->lock);
  if (error) *bad = wr;
  return error;
}

int rocefs_post_recv(struct ibv_qp* ibv, struct ibv_recv_wr* wr, struct ibv_recv_wr** bad) {
  struct rocefs_context* context = rocefs_context_of(ibv->context);
  bool may_receive = ibv->state != IBV_QPS_RESET && ibv->recv_cq && !ibv->srq;
  int error = rocefs_is_gone(context) ? EIO : may_receive ? 0 : EINVAL;
  if (!error) return rocefs_post_receives(context, &rocefs_qp_of(ibv)->receive, wr, bad);
  *bad = wr;
  return error;
}
