#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rdma/provider/rocefs.h"

static bool can_be(const struct rocefs_qp* qp, const struct rocefs_created* created) {
  return created->qpn >= ROCEFS_FIRST_QPN && created->qpn - ROCEFS_FIRST_QPN < ROCEFS_MAX_QPS &&
         created->doorbell < ROCEFS_MAX_QUEUES && created->max_inline <= ROCEFS_MAX_INLINE &&
         qp->cap.max_send_sge <= ROCEFS_MAX_SGE && qp->cap.max_recv_sge <= ROCEFS_MAX_SGE &&
         created->size >= sizeof(struct rocefs_qp_page) &&
         rocefs_slots_fit(created, created->send_offset, created->entries, ROCEFS_MAX_QP_WR,
                          sizeof(struct rocefs_send_wqe)) &&
         rocefs_slots_fit(created, created->receive_offset, created->receive_entries,
                          ROCEFS_MAX_QP_WR, sizeof(struct rocefs_receive_wqe));
}

static struct rocefs_sends* sends_of(const struct rocefs_qp* qp) {
  struct rocefs_context* context = rocefs_context_of(qp->verbs.qp.context);
  return &context->sends[qp->verbs.qp.qp_num - ROCEFS_FIRST_QPN];
}

static int map_qp(struct rocefs_qp* qp, const struct rocefs_created* created, int fd) {
  if (!can_be(qp, created)) {
    if (fd >= 0) close(fd);
    return EPROTO;
  }
  char* memory = rocefs_map(fd, created->size, PROT_READ | PROT_WRITE);
  if (!memory) return errno;
  struct rocefs_qp_page* page = (struct rocefs_qp_page*)(void*)memory;
  qp->memory = memory;
  qp->size = created->size;
  qp->cap.max_send_wr = created->entries;
  qp->cap.max_recv_wr = created->receive_entries;
  qp->cap.max_inline_data = created->max_inline;
  rocefs_init_queue(&qp->send, &page->send, memory + created->send_offset, created->entries,
                    qp->cap.max_send_sge, created->doorbell);
  if (created->entries > 0) {
    *sends_of(qp) = (struct rocefs_sends){.cookie = (uintptr_t)&qp->verbs.qp};
    qp->send.released = &sends_of(qp)->polled;
  }
  rocefs_init_queue(&qp->receive, &page->receive, memory + created->receive_offset,
                    created->receive_entries, qp->cap.max_recv_sge, created->doorbell);
  return 0;
}

static struct rocefs_request creation(const struct rocefs_qp* qp, const struct ibv_pd* pd,
                                      const struct ibv_qp_init_attr* attr) {
  return (struct rocefs_request){
      .op = ROCEFS_OP_CREATE_QP,
      .u.create_qp = {.pd = pd->handle,
                      .type = attr->qp_type,
                      .send_cq = attr->send_cq->handle,
                      .receive_cq = attr->recv_cq ? attr->recv_cq->handle : 0,
                      .srq = attr->srq ? attr->srq->handle : 0,
                      .max_send_wr = qp->cap.max_send_wr,
                      .max_receive_wr = qp->cap.max_recv_wr,
                      .max_send_sge = qp->cap.max_send_sge,
                      .max_receive_sge = qp->cap.max_recv_sge,
                      .max_inline = qp->cap.max_inline_data}};
}

static int create(struct rocefs_context* context, struct rocefs_qp* qp,
                  struct rocefs_request request) {
  struct rocefs_answer answer;
  int fd;
  if (rocefs_is_foreign(context)) return EIO;
  request.u.create_qp.cookie = (uintptr_t)&qp->verbs.qp;
  rocefs_expect_events(&qp->element, ROCEFS_QP, &qp->verbs.qp);
  pthread_mutex_lock(&context->teardown);
  int error = rocefs_request_passing(context, &request, -1, &answer, &fd, 1);
  pthread_mutex_unlock(&context->teardown);
  if (!error) {
    qp->verbs.qp.context = &context->verbs.context;
    qp->verbs.qp.handle = answer.u.created.handle;
    qp->verbs.qp.qp_num = answer.u.created.qpn;
    if (!(error = map_qp(qp, &answer.u.created, fd))) return 0;
    struct rocefs_request undo = {.op = ROCEFS_OP_DESTROY_QP, .u.handle = answer.u.created.handle};
    rocefs_request(context, &undo, NULL);
  }
  rocefs_expect_no_events(&qp->element);
  return error;
}

/* Frees the queue pair, or fills the part that libibverbs fills itself for a CQ or an SRQ. */
static struct ibv_qp* finish(struct rocefs_qp* qp, int error, enum ibv_qp_type type,
                             void* qp_context) {
  if (error) {
    free(qp);
    errno = error;
    return NULL;
  }
  struct ibv_qp* ibv = &qp->verbs.qp;
  ibv->qp_context = qp_context;
  ibv->state = IBV_QPS_RESET;
  ibv->qp_type = type;
  pthread_mutex_init(&ibv->mutex, NULL);
  pthread_cond_init(&ibv->cond, NULL);
  return ibv;
}

struct ibv_qp* rocefs_create_qp(struct ibv_pd* pd, struct ibv_qp_init_attr* attr) {
  struct rocefs_qp* qp = NULL;
  int error = 0;
  bool sends_only = attr->qp_type == IBV_QPT_XRC_SEND;
  if (!rocefs_has_operation(attr->qp_type, IBV_WR_SEND))
    error = EOPNOTSUPP;
  else if (!attr->send_cq || (!attr->recv_cq && !sends_only) || (attr->srq && sends_only))
    error = EINVAL;
  else if (!(qp = calloc(1, sizeof *qp)))
    error = ENOMEM;
  if (!error) {
    qp->cap = attr->cap;
    if (attr->srq || sends_only) qp->cap.max_recv_wr = qp->cap.max_recv_sge = 0;
    error = create(rocefs_context_of(pd->context), qp, creation(qp, pd, attr));
  }
  struct ibv_qp* ibv = finish(qp, error, attr->qp_type, attr->qp_context);
  if (!ibv) return NULL;
  rocefs_count_object(pd, 1);
  ibv->pd = pd;
  ibv->send_cq = attr->send_cq;
  ibv->recv_cq = sends_only ? NULL : attr->recv_cq;
  ibv->srq = attr->srq;
  qp->sq_sig_all = attr->sq_sig_all;
  attr->cap = qp->cap;
  return ibv;
}

/* Creates a receiving queue pair of XRC, or opens one that is there. It has no queues. */
static struct ibv_qp* receive_xrc(struct ibv_context* context, struct rocefs_request request,
                                  void* qp_context) {
  struct rocefs_qp* qp = calloc(1, sizeof *qp);
  if (!qp) return NULL;
  request.u.create_qp.type = IBV_QPT_XRC_RECV;
  int error = create(rocefs_context_of(context), qp, request);
  return finish(qp, error, IBV_QPT_XRC_RECV, qp_context);
}

struct ibv_qp* rocefs_open_qp(struct ibv_context* context, struct ibv_qp_open_attr* attr) {
  const uint32_t needed = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
  const uint32_t known = needed | IBV_QP_OPEN_ATTR_CONTEXT;
  if ((attr->comp_mask & needed) != needed || (attr->comp_mask & ~known) ||
      attr->qp_type != IBV_QPT_XRC_RECV || attr->xrcd->context != context) {
    errno = EINVAL;
    return NULL;
  }
  struct rocefs_request request = {
      .op = ROCEFS_OP_OPEN_QP,
      .u.create_qp = {.xrcd = rocefs_xrcd_handle(attr->xrcd), .qpn = attr->qp_num}};
  void* qp_context = attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT ? attr->qp_context : NULL;
  struct ibv_qp* qp = receive_xrc(context, request, qp_context);
  if (qp) qp->state = IBV_QPS_UNKNOWN;
  return qp;
}

struct ibv_qp* rocefs_create_qp_ex(struct ibv_context* context, struct ibv_qp_init_attr_ex* attr) {
  bool receives = attr->qp_type == IBV_QPT_XRC_RECV;
  const uint32_t needed = receives ? IBV_QP_INIT_ATTR_XRCD : IBV_QP_INIT_ATTR_PD;
  const uint32_t known = needed | IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  bool builds = attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  bool flags = (attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) && attr->create_flags;
  bool lacks = builds && (attr->send_ops_flags & ~rocefs_builders_of(attr->qp_type));
  int error = 0;
  if ((attr->comp_mask & ~known) || flags || lacks)
    error = EOPNOTSUPP;
  else if (!(attr->comp_mask & needed))
    error = EINVAL;
  else if ((receives ? attr->xrcd->context : attr->pd->context) != context)
    error = EINVAL;
  if (error) {
    errno = error;
    return NULL;
  }
  if (receives) {
    struct rocefs_request request = {.op = ROCEFS_OP_CREATE_QP,
                                     .u.create_qp = {.xrcd = rocefs_xrcd_handle(attr->xrcd)}};
    return receive_xrc(context, request, attr->qp_context);
  }
  /* Beginning of ibv_qp_init_attr_ex equals ibv_qp_init_attr. */
  struct ibv_qp* qp = rocefs_create_qp(attr->pd, (struct ibv_qp_init_attr*)attr);
  if (qp && builds) rocefs_init_builder(rocefs_qp_of(qp), attr->send_ops_flags);
  return qp;
}

static void clean_cqs(struct ibv_qp* qp) {
  if (qp->send_cq) rocefs_clean_cq(qp->send_cq, qp->qp_num);
  if (qp->recv_cq && qp->recv_cq != qp->send_cq) rocefs_clean_cq(qp->recv_cq, qp->qp_num);
}

int rocefs_modify_qp(struct ibv_qp* qp, struct ibv_qp_attr* attr, int mask) {
  struct rocefs_request request = {.op = ROCEFS_OP_MODIFY_QP};
  rocefs_qp_attr_from_verbs(&request.u.qp, attr, mask);
  request.u.qp.handle = qp->handle;
  int error = rocefs_request(rocefs_context_of(qp->context), &request, NULL);
  if (error || !(mask & IBV_QP_STATE)) return error;
  qp->state = attr->qp_state;
  /* Forgets completions from before too: the engine has emptied the queues. */
  if (qp->state == IBV_QPS_RESET) {
    struct rocefs_work_queue* sends = &rocefs_qp_of(qp)->send;
    clean_cqs(qp);
    if (sends->entries > 0)
      __atomic_store_n(sends->released, sends->counters->posted, __ATOMIC_RELEASE);
  }
  return 0;
}

int rocefs_query_qp(struct ibv_qp* ibv, struct ibv_qp_attr* attr, int mask,
                    struct ibv_qp_init_attr* init_attr) {
  struct rocefs_request request = {.op = ROCEFS_OP_QUERY_QP, .u.handle = ibv->handle};
  const struct rocefs_qp* qp = rocefs_qp_of(ibv);
  struct rocefs_answer answer;
  (void)mask; /* unrequested attributes may be returned */
  int error = rocefs_request(rocefs_context_of(ibv->context), &request, &answer);
  if (error) return error;
  rocefs_qp_attr_to_verbs(&answer.u.qp, attr);
  attr->cap = qp->cap;
  memset(init_attr, 0, sizeof *init_attr);
  init_attr->qp_context = ibv->qp_context;
  init_attr->send_cq = ibv->send_cq;
  init_attr->recv_cq = ibv->recv_cq;
  init_attr->srq = ibv->srq;
  init_attr->cap = qp->cap;
  init_attr->qp_type = ibv->qp_type;
  init_attr->sq_sig_all = qp->sq_sig_all;
  return 0;
}

int rocefs_destroy_qp(struct ibv_qp* ibv) {
  struct rocefs_qp* qp = rocefs_qp_of(ibv);
  struct rocefs_context* context = rocefs_context_of(ibv->context);
  struct rocefs_request request = {.op = ROCEFS_OP_DESTROY_QP, .u.handle = ibv->handle};
  if (rocefs_is_foreign(context)) return rocefs_destroy_error(context, EIO);
  pthread_mutex_lock(&context->teardown);
  int refused = rocefs_request(context, &request, NULL);
  int error = rocefs_destroy_error(context, refused);
  if (!error) {
    clean_cqs(ibv);
    if (qp->send.entries > 0) __atomic_store_n(&sends_of(qp)->cookie, 0, __ATOMIC_RELAXED);
    rocefs_drop_events(context, ibv->context->async_fd, 0, &qp->element);
    rocefs_expect_no_events(&qp->element);
  }
  pthread_mutex_unlock(&context->teardown);
  if (error) return error;
  if (!refused)
    rocefs_await_acknowledged(&ibv->mutex, &ibv->cond, &ibv->events_completed,
                              qp->element.asynchronous);
  if (ibv->pd) rocefs_count_object(ibv->pd, -1);
  munmap(qp->memory, qp->size);
  pthread_mutex_destroy(&qp->send.lock);
  pthread_mutex_destroy(&qp->receive.lock);
  pthread_mutex_destroy(&ibv->mutex);
  pthread_cond_destroy(&ibv->cond);
  free(qp);
  return 0;
}
