#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rdma/provider/rocefs.h"

static int map_srq(struct rocefs_srq* srq, const struct rocefs_created* created, int fd,
                   uint32_t max_sge) {
  bool fits = rocefs_slots_fit(created, created->receive_offset, created->receive_entries,
                               ROCEFS_MAX_SRQ_WR, sizeof(struct rocefs_receive_wqe));
  if (!fits || created->size < sizeof(struct rocefs_qp_page) || max_sge > ROCEFS_MAX_SGE ||
      created->doorbell >= ROCEFS_MAX_QUEUES) {
    if (fd >= 0) close(fd);
    return EPROTO;
  }
  srq->memory = rocefs_map(fd, created->size, PROT_READ | PROT_WRITE);
  if (!srq->memory) return errno;
  srq->size = created->size;
  srq->ibv.handle = created->handle;
  rocefs_init_queue(&srq->receive, srq->memory, (char*)srq->memory + created->receive_offset,
                    created->receive_entries, max_sge, created->doorbell);
  return 0;
}

/* The rest of `wanted` is filled in. */
static int create(struct rocefs_context* context, struct rocefs_srq* srq,
                  struct rocefs_create_srq wanted, struct ibv_srq_attr* attr) {
  struct rocefs_request request = {.op = ROCEFS_OP_CREATE_SRQ, .u.create_srq = wanted};
  struct rocefs_answer answer;
  request.u.create_srq.cookie = (uintptr_t)&srq->ibv;
  request.u.create_srq.max_wr = attr->max_wr;
  request.u.create_srq.max_sge = attr->max_sge;
  int fd;
  int error = rocefs_request_passing(context, &request, -1, &answer, &fd, 1);
  if (error) return error;
  error = map_srq(srq, &answer.u.created, fd, attr->max_sge);
  if (!error) {
    attr->max_wr = answer.u.created.receive_entries;
    if (wanted.xrcd) srq->number = answer.u.created.qpn;
    return 0;
  }
  struct rocefs_request undo = {.op = ROCEFS_OP_DESTROY_SRQ, .u.handle = answer.u.created.handle};
  rocefs_request(context, &undo, NULL);
  return error;
}

static struct ibv_srq* make(struct ibv_context* context, struct rocefs_create_srq wanted,
                            struct ibv_srq_attr* attr) {
  struct rocefs_srq* srq = calloc(1, sizeof *srq);
  if (!srq) return NULL;
  rocefs_expect_events(&srq->element, ROCEFS_SRQ, &srq->ibv);
  int error = create(rocefs_context_of(context), srq, wanted, attr);
  if (error) {
    rocefs_expect_no_events(&srq->element);
    free(srq);
    errno = error;
    return NULL;
  }
  return &srq->ibv;
}

struct ibv_srq* rocefs_create_srq(struct ibv_pd* pd, struct ibv_srq_init_attr* attr) {
  struct ibv_srq* srq =
      make(pd->context, (struct rocefs_create_srq){.pd = pd->handle}, &attr->attr);
  if (srq) rocefs_count_object(pd, 1);
  return srq;
}

/* Not called for a queue without XRC, unless a program asks for it in other words. */
struct ibv_srq* rocefs_create_srq_ex(struct ibv_context* context,
                                     struct ibv_srq_init_attr_ex* attr) {
  const uint32_t xrc = IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
  const uint32_t known = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | xrc;
  enum ibv_srq_type type =
      attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE ? attr->srq_type : IBV_SRQT_BASIC;
  uint32_t needed = IBV_SRQ_INIT_ATTR_PD | (type == IBV_SRQT_XRC ? xrc : 0);
  if ((attr->comp_mask & ~known) || (type != IBV_SRQT_BASIC && type != IBV_SRQT_XRC)) {
    errno = EOPNOTSUPP;
    return NULL;
  }
  bool xrc_here =
      type != IBV_SRQT_XRC || ((attr->comp_mask & xrc) == xrc && attr->xrcd->context == context &&
                               attr->cq->context == context);
  if ((attr->comp_mask & needed) != needed || attr->pd->context != context || !xrc_here) {
    errno = EINVAL;
    return NULL;
  }
  struct rocefs_create_srq wanted = {.pd = attr->pd->handle};
  if (type == IBV_SRQT_XRC) {
    wanted.xrcd = rocefs_xrcd_handle(attr->xrcd);
    wanted.cq = attr->cq->handle;
  }
  struct ibv_srq* srq = make(context, wanted, &attr->attr);
  if (!srq) return NULL;
  /* Fills libibverbs' part, which libibverbs does in ibv_create_srq() alone. */
  srq->context = context;
  srq->srq_context = attr->srq_context;
  srq->pd = attr->pd;
  rocefs_count_object(srq->pd, 1);
  pthread_mutex_init(&srq->mutex, NULL);
  pthread_cond_init(&srq->cond, NULL);
  return srq;
}

int rocefs_get_srq_num(struct ibv_srq* srq, uint32_t* number) {
  if (!rocefs_srq_of(srq)->number) return EINVAL;
  *number = rocefs_srq_of(srq)->number;
  return 0;
}

int rocefs_modify_srq(struct ibv_srq* srq, struct ibv_srq_attr* attr, int mask) {
  struct rocefs_request request = {.op = ROCEFS_OP_MODIFY_SRQ,
                                   .u.srq = {.handle = srq->handle, .limit = attr->srq_limit}};
  if (mask & IBV_SRQ_MAX_WR) return EOPNOTSUPP; /* no IBV_DEVICE_SRQ_RESIZE */
  if (mask & ~IBV_SRQ_LIMIT) return EINVAL;
  if (!mask) return 0;
  return rocefs_request(rocefs_context_of(srq->context), &request, NULL);
}

int rocefs_query_srq(struct ibv_srq* srq, struct ibv_srq_attr* attr) {
  struct rocefs_request request = {.op = ROCEFS_OP_QUERY_SRQ, .u.handle = srq->handle};
  struct rocefs_answer answer;
  int error = rocefs_request(rocefs_context_of(srq->context), &request, &answer);
  if (error) return error;
  attr->max_wr = answer.u.srq.max_wr;
  attr->max_sge = answer.u.srq.max_sge;
  attr->srq_limit = answer.u.srq.limit;
  return 0;
}

int rocefs_destroy_srq(struct ibv_srq* ibv) {
  struct rocefs_srq* srq = rocefs_srq_of(ibv);
  struct rocefs_context* context = rocefs_context_of(ibv->context);
  struct rocefs_request request = {.op = ROCEFS_OP_DESTROY_SRQ, .u.handle = ibv->handle};
  if (rocefs_is_foreign(context)) return rocefs_destroy_error(context, EIO);
  pthread_mutex_lock(&context->teardown);
  int refused = rocefs_request(context, &request, NULL);
  int error = rocefs_destroy_error(context, refused);
  if (!error) {
    rocefs_drop_events(context, ibv->context->async_fd, 0, &srq->element);
    rocefs_expect_no_events(&srq->element);
  }
  pthread_mutex_unlock(&context->teardown);
  if (error) return error;
  if (!refused)
    rocefs_await_acknowledged(&ibv->mutex, &ibv->cond, &ibv->events_completed,
                              srq->element.asynchronous);
  rocefs_count_object(ibv->pd, -1);
  munmap(srq->memory, srq->size);
  pthread_mutex_destroy(&srq->receive.lock);
  free(srq);
  return 0;
}

int rocefs_post_srq_recv(struct ibv_srq* ibv, struct ibv_recv_wr* wr, struct ibv_recv_wr** bad) {
  struct rocefs_context* context = rocefs_context_of(ibv->context);
  if (!rocefs_is_gone(context))
    return rocefs_post_receives(context, &rocefs_srq_of(ibv)->receive, wr, bad);
  *bad = wr;
  return EIO;
}
