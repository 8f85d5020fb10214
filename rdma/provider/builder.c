/* Extended posting: ibv_wr_*() write requests to their slots, part by part, and ibv_wr_complete()
 * posts them together. After an error nothing is posted, and ibv_wr_complete() returns it;
 * ibv_wr_post(3). */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "rdma/provider/rocefs.h"

static struct rocefs_qp* qp_of(struct ibv_qp_ex* ex) {
  return rocefs_qp_of(&ex->qp_base);
}

static void fail(struct rocefs_qp* qp, int error) {
  if (!qp->build.error) qp->build.error = error;
  qp->build.wqe = &qp->build.spare;
}

static void start(struct ibv_qp_ex* ex) {
  struct rocefs_qp* qp = qp_of(ex);
  pthread_mutex_lock(&qp->send.lock);
  qp->build.count = 0;
  qp->build.room = rocefs_free_slots(&qp->send);
  qp->build.error = 0;
  int error = rocefs_may_send(&ex->qp_base);
  if (error) fail(qp, error);
}

static int complete(struct ibv_qp_ex* ex) {
  struct rocefs_qp* qp = qp_of(ex);
  struct rocefs_context* context = rocefs_context_of(ex->qp_base.context);
  int error = qp->build.error;
  if (!error && qp->build.count == 1) rocefs_copy_little(context, &qp->send);
  if (!error) rocefs_publish(context, &qp->send, qp->build.count);
  pthread_mutex_unlock(&qp->send.lock);
  return error;
}

static void give_up(struct ibv_qp_ex* ex) {
  pthread_mutex_unlock(&qp_of(ex)->send.lock);
}

/* Begins the next request, without data. */
static struct rocefs_send_wqe* begin(struct ibv_qp_ex* ex, unsigned opcode) {
  struct rocefs_qp* qp = qp_of(ex);
  struct rocefs_work_queue* queue = &qp->send;
  struct rocefs_send_wqe* slots = queue->slots;
  if (!rocefs_has_operation(ex->qp_base.qp_type, opcode))
    fail(qp, EINVAL);
  else if (qp->build.count == qp->build.room)
    fail(qp, ENOMEM);
  else if (!qp->build.error)
    qp->build.wqe = &slots[(queue->counters->posted + qp->build.count++) & (queue->entries - 1)];
  struct rocefs_send_wqe* wqe = qp->build.wqe;
  const unsigned flags = ROCEFS_SEND_FENCE | ROCEFS_SEND_SIGNALED | ROCEFS_SEND_SOLICITED;
  memset(wqe, 0, offsetof(struct rocefs_send_wqe, u));
  queue->num_sge = 0;
  wqe->wr_id = ex->wr_id;
  wqe->opcode = opcode;
  wqe->flags = (ex->wr_flags & flags) | (qp->sq_sig_all ? ROCEFS_SEND_SIGNALED : 0);
  return wqe;
}

static struct rocefs_send_wqe* begin_remote(struct ibv_qp_ex* ex, unsigned opcode, uint32_t rkey,
                                            uint64_t address) {
  struct rocefs_send_wqe* wqe = begin(ex, opcode);
  wqe->rkey = rkey;
  wqe->remote_address = address;
  return wqe;
}

static void send(struct ibv_qp_ex* ex) {
  begin(ex, IBV_WR_SEND);
}
static void send_imm(struct ibv_qp_ex* ex, __be32 immediate) {
  begin(ex, IBV_WR_SEND_WITH_IMM)->immediate = be32toh(immediate);
}
static void send_inv(struct ibv_qp_ex* ex, uint32_t rkey) {
  begin(ex, IBV_WR_SEND_WITH_INV)->immediate = rkey;
}
static void local_inv(struct ibv_qp_ex* ex, uint32_t rkey) {
  begin(ex, IBV_WR_LOCAL_INV)->immediate = rkey;
}
static void rdma_read(struct ibv_qp_ex* ex, uint32_t rkey, uint64_t address) {
  begin_remote(ex, IBV_WR_RDMA_READ, rkey, address);
}
static void rdma_write(struct ibv_qp_ex* ex, uint32_t rkey, uint64_t address) {
  begin_remote(ex, IBV_WR_RDMA_WRITE, rkey, address);
}
static void rdma_write_imm(struct ibv_qp_ex* ex, uint32_t rkey, uint64_t address,
                           __be32 immediate) {
  begin_remote(ex, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, address)->immediate = be32toh(immediate);
}
static void atomic_cmp_swp(struct ibv_qp_ex* ex, uint32_t rkey, uint64_t address, uint64_t compare,
                           uint64_t swap) {
  struct rocefs_send_wqe* wqe = begin_remote(ex, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, address);
  wqe->compare_add = compare;
  wqe->swap = swap;
}
static void atomic_fetch_add(struct ibv_qp_ex* ex, uint32_t rkey, uint64_t address, uint64_t add) {
  begin_remote(ex, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, address)->compare_add = add;
}
/* The eight octets at `value` are taken now: no region need hold them. */
static void atomic_write(struct ibv_qp_ex* ex, uint32_t rkey, uint64_t address, const void* value) {
  struct rocefs_send_wqe* wqe = begin_remote(ex, IBV_WR_ATOMIC_WRITE, rkey, address);
  memcpy(wqe->u.inline_data, value, sizeof(uint64_t));
  wqe->flags |= ROCEFS_SEND_INLINE;
  wqe->num_sge = sizeof(uint64_t);
}
static void bind_mw(struct ibv_qp_ex* ex, struct ibv_mw* mw, uint32_t rkey,
                    const struct ibv_mw_bind_info* info) {
  struct rocefs_send_wqe* wqe = begin(ex, IBV_WR_BIND_MW);
  int error = mw->type == IBV_MW_TYPE_2 ? rocefs_write_bind(wqe, mw, rkey, info) : EINVAL;
  if (error) fail(qp_of(ex), error);
}

static void set_ud_addr(struct ibv_qp_ex* ex, struct ibv_ah* ah, uint32_t remote_qpn,
                        uint32_t qkey) {
  struct rocefs_send_wqe* wqe = qp_of(ex)->build.wqe;
  wqe->remote_qpn = remote_qpn;
  wqe->qkey = qkey;
  wqe->path = ROCEFS_CONTAINER(ah, struct rocefs_ah, ibv)->path;
}

static void set_xrc_srqn(struct ibv_qp_ex* ex, uint32_t remote_srqn) {
  qp_of(ex)->build.wqe->srqn = remote_srqn;
}

static void set_sge_list(struct ibv_qp_ex* ex, size_t count, const struct ibv_sge* list) {
  struct rocefs_qp* qp = qp_of(ex);
  if (count > qp->send.max_sge) return fail(qp, EINVAL);
  rocefs_write_sges(&qp->send, qp->build.wqe, list, (uint32_t)count);
}
static void set_sge(struct ibv_qp_ex* ex, uint32_t lkey, uint64_t address, uint32_t length) {
  struct ibv_sge sge = {address, length, lkey};
  set_sge_list(ex, 1, &sge);
}

static void set_inline_data_list(struct ibv_qp_ex* ex, size_t count,
                                 const struct ibv_data_buf* list) {
  struct rocefs_qp* qp = qp_of(ex);
  struct rocefs_send_wqe* wqe = qp->build.wqe;
  size_t length = 0;
  if (!rocefs_operation_has(wqe->opcode, ROCEFS_PAYLOAD)) return fail(qp, EINVAL);
  for (size_t i = 0; i < count; ++i) {
    if (list[i].length > qp->cap.max_inline_data - length) return fail(qp, EINVAL);
    memcpy(wqe->u.inline_data + length, list[i].addr, list[i].length);
    length += list[i].length;
  }
  wqe->flags |= ROCEFS_SEND_INLINE;
  wqe->num_sge = (uint32_t)length;
}
static void set_inline_data(struct ibv_qp_ex* ex, void* data, size_t length) {
  struct ibv_data_buf one = {data, length};
  set_inline_data_list(ex, 1, &one);
}

void rocefs_init_builder(struct rocefs_qp* qp, uint64_t operations) {
  struct ibv_qp_ex* ex = &qp->verbs.qp_ex;
  qp->build.wqe = &qp->build.spare;
  ex->wr_start = start;
  ex->wr_complete = complete;
  ex->wr_abort = give_up;
  ex->wr_send = send;
  ex->wr_send_imm = send_imm;
  ex->wr_send_inv = send_inv;
  ex->wr_local_inv = local_inv;
  ex->wr_rdma_read = rdma_read;
  ex->wr_rdma_write = rdma_write;
  ex->wr_rdma_write_imm = rdma_write_imm;
  ex->wr_atomic_cmp_swp = atomic_cmp_swp;
  ex->wr_atomic_fetch_add = atomic_fetch_add;
  ex->wr_bind_mw = bind_mw;
  ex->wr_set_ud_addr = set_ud_addr;
  ex->wr_set_xrc_srqn = set_xrc_srqn;
  ex->wr_set_sge = set_sge;
  ex->wr_set_sge_list = set_sge_list;
  ex->wr_set_inline_data = set_inline_data;
  ex->wr_set_inline_data_list = set_inline_data_list;
  for (unsigned i = 0; i < 3; ++i) qp->verbs.comp_masks[i] = VERBS_QP_EX;
  /* A library whose comp_mask is in this place does not know the operation. */
  if (operations & IBV_QP_EX_WITH_ATOMIC_WRITE) ex->wr_atomic_write = atomic_write;
}
