#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rdma/provider/rocefs.h"

/* Returns an errno; nothing has changed then. */
static int map_cq(struct rocefs_cq* cq, const struct rocefs_created* created, int fd) {
  bool fits = rocefs_slots_fit(created, ROCEFS_CQ_ENTRIES, created->entries, ROCEFS_MAX_CQE,
                               sizeof(struct rocefs_cqe));
  if (!fits || created->entries == 0) {
    if (fd >= 0) close(fd);
    return EPROTO;
  }
  struct rocefs_cq_page* page = rocefs_map(fd, created->size, PROT_READ | PROT_WRITE);
  if (!page) return errno;
  cq->page = page;
  cq->size = created->size;
  cq->entries = (struct rocefs_cqe*)((char*)cq->page + ROCEFS_CQ_ENTRIES);
  cq->mask = created->entries - 1;
  cq->verbs.cq.handle = created->handle;
  cq->verbs.cq.cqe = (int)created->entries;
  return 0;
}

static int create(struct rocefs_context* context, struct rocefs_cq* cq, uint32_t entries,
                  bool stamped) {
  struct rocefs_request request = {.op = ROCEFS_OP_CREATE_CQ,
                                   .u.create_cq = {.cookie = (uintptr_t)&cq->verbs.cq,
                                                   .channel = cq->channel,
                                                   .entries = entries,
                                                   .stamped = stamped}};
  struct rocefs_answer answer;
  int fd;
  int error = rocefs_request_passing(context, &request, -1, &answer, &fd, 1);
  if (error || !(error = map_cq(cq, &answer.u.created, fd))) return error;
  struct rocefs_request undo = {.op = ROCEFS_OP_DESTROY_CQ, .u.handle = answer.u.created.handle};
  rocefs_request(context, &undo, NULL);
  return error;
}

struct ibv_cq* rocefs_create_cq(struct ibv_context* ibv, int cqe, struct ibv_comp_channel* channel,
                                int comp_vector) {
  return rocefs_make_cq(ibv, cqe, channel, comp_vector, false);
}

struct ibv_cq* rocefs_make_cq(struct ibv_context* ibv, int cqe, struct ibv_comp_channel* channel,
                              int comp_vector, bool stamped) {
  struct rocefs_context* context = rocefs_context_of(ibv);
  if (comp_vector != 0 || cqe < 1 || (uint32_t)cqe > context->attr.max_cqe) {
    errno = EINVAL;
    return NULL;
  }
  struct rocefs_cq* cq = calloc(1, sizeof *cq);
  if (!cq) return NULL;
  cq->channel = channel ? rocefs_channel_name(channel->fd) : 0;
  rocefs_expect_events(&cq->element, ROCEFS_CQ, &cq->verbs.cq);
  int error = channel && !cq->channel ? EINVAL : create(context, cq, (uint32_t)cqe, stamped);
  if (error) {
    rocefs_expect_no_events(&cq->element);
    free(cq);
    errno = error;
    return NULL;
  }
  pthread_mutex_init(&cq->lock, NULL);
  return &cq->verbs.cq;
}

int rocefs_destroy_cq(struct ibv_cq* ibv) {
  struct rocefs_cq* cq = rocefs_cq_of(ibv);
  struct rocefs_context* context = rocefs_context_of(ibv->context);
  struct rocefs_request request = {.op = ROCEFS_OP_DESTROY_CQ, .u.handle = ibv->handle};
  if (rocefs_is_foreign(context)) return rocefs_destroy_error(context, EIO);
  pthread_mutex_lock(&context->teardown);
  int refused = rocefs_request(context, &request, NULL);
  int error = rocefs_destroy_error(context, refused);
  if (!error) {
    if (cq->channel) rocefs_drop_events(context, ibv->channel->fd, cq->channel, &cq->element);
    rocefs_drop_events(context, ibv->context->async_fd, 0, &cq->element);
    rocefs_expect_no_events(&cq->element);
  }
  pthread_mutex_unlock(&context->teardown);
  if (error) return error;
  if (!refused) {
    rocefs_await_acknowledged(&ibv->mutex, &ibv->cond, &ibv->comp_events_completed,
                              cq->element.completions);
    rocefs_await_acknowledged(&ibv->mutex, &ibv->cond, &ibv->async_events_completed,
                              cq->element.asynchronous);
  }
  munmap(cq->page, cq->size);
  pthread_mutex_destroy(&cq->lock);
  free(cq);
  return 0;
}

static void read_cqe(struct ibv_wc* wc, const struct rocefs_cqe* cqe) {
  memset(wc, 0, sizeof *wc);
  wc->wr_id = cqe->wr_id;
  wc->status = (enum ibv_wc_status)cqe->status;
  wc->opcode = (enum ibv_wc_opcode)cqe->opcode;
  wc->byte_len = cqe->byte_len;
  wc->wc_flags = cqe->flags;
  if (cqe->flags & ROCEFS_WC_WITH_INV)
    wc->invalidated_rkey = cqe->immediate;
  else
    wc->imm_data = htobe32(cqe->immediate);
  wc->qp_num = cqe->qpn;
  wc->src_qp = cqe->source_qpn;
  wc->sl = (uint8_t)cqe->l3_type;
}

uint32_t rocefs_count_completions(struct rocefs_cq* cq, uint32_t next) {
  uint32_t waiting = __atomic_load_n(&cq->page->produced, __ATOMIC_ACQUIRE) - next;
  if (waiting <= cq->mask + 1) return waiting;
  rocefs_distrust(rocefs_context_of(cq->verbs.cq.context), "more completions than have room");
  return 0;
}

/* Gives send slots back to the queue pair, which exists: its destruction removes its completions
 * first. */
static bool take_slots_back(struct rocefs_context* context, const struct rocefs_cqe* cqe) {
  uint32_t number = cqe->qpn - ROCEFS_FIRST_QPN;
  if (cqe->status > IBV_WC_GENERAL_ERR || !rocefs_completes_with(cqe->opcode)) return false;
  if (cqe->qp == 0) return true;
  if (number >= ROCEFS_MAX_QPS) return false;
  struct rocefs_sends* sends = &context->sends[number];
  if (__atomic_load_n(&sends->cookie, __ATOMIC_RELAXED) != cqe->qp) return false;
  if (!(cqe->opcode & IBV_WC_RECV))
    __atomic_store_n(&sends->polled, cqe->released, __ATOMIC_RELEASE);
  return true;
}

bool rocefs_take_completion(struct rocefs_cq* cq, uint32_t next, struct rocefs_cqe* cqe) {
  struct rocefs_context* context = rocefs_context_of(cq->verbs.cq.context);
  *cqe = cq->entries[next & cq->mask];
  __atomic_signal_fence(__ATOMIC_ACQ_REL); /* the copy that is checked is the one that is used */
  if (take_slots_back(context, cqe)) return true;
  rocefs_distrust(context, "a completion that cannot be");
  return false;
}

static int take(struct rocefs_cq* cq, int count, struct ibv_wc* wc) {
  struct rocefs_cqe cqe;
  int taken = 0;
  pthread_mutex_lock(&cq->lock);
  uint32_t next = cq->page->consumed, left = rocefs_count_completions(cq, next);
  for (; taken < count && left > 0 && rocefs_take_completion(cq, next, &cqe); --left, ++next)
    read_cqe(&wc[taken++], &cqe);
  if (taken > 0) __atomic_store_n(&cq->page->consumed, next, __ATOMIC_RELEASE);
  pthread_mutex_unlock(&cq->lock);
  return taken;
}

int rocefs_poll_cq(struct ibv_cq* ibv, int count, struct ibv_wc* wc) {
  struct rocefs_cq* cq = rocefs_cq_of(ibv);
  int taken = take(cq, count, wc);
  if (taken == 0 && count > 0) {
    bool gone = rocefs_is_gone(rocefs_context_of(ibv->context));
    /* Completions from before the device left are still given; after them an error, so that a
     * program does not wait for ever. */
    if (gone || rocefs_thread_is_idle(cq)) taken = take(cq, count, wc);
    if (taken == 0 && gone) return -EIO;
  }
  if (taken > 0) rocefs_thread_is_busy();
  return taken;
}

int rocefs_req_notify_cq(struct ibv_cq* ibv, int solicited_only) {
  struct rocefs_cq* cq = rocefs_cq_of(ibv);
  if (rocefs_is_gone(rocefs_context_of(ibv->context))) return EIO;
  pthread_mutex_lock(&cq->lock); /* prevents a resize */
  uint32_t wanted = solicited_only ? ROCEFS_ARMED_SOLICITED : ROCEFS_ARMED_NEXT;
  uint32_t armed = __atomic_load_n(&cq->page->armed, __ATOMIC_RELAXED);
  while (armed < wanted && !__atomic_compare_exchange_n(&cq->page->armed, &armed, wanted, false,
                                                        __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
  }
  /* Arms the CQ. A program polls once more after this: either it finds a new completion, or the
   * engine has seen that the CQ is armed. */
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  pthread_mutex_unlock(&cq->lock);
  return 0;
}

/* Replaces the memory. When the engine answers it has moved unconsumed completions to the new
 * memory, and writes there from then on. */
int rocefs_resize_cq(struct ibv_cq* ibv, int cqe) {
  ROCEFS_UNCANCELLED;
  struct rocefs_context* context = rocefs_context_of(ibv->context);
  struct rocefs_cq* cq = rocefs_cq_of(ibv);
  if (cqe < 1 || (uint32_t)cqe > context->attr.max_cqe) return EINVAL;
  if (rocefs_is_foreign(context)) return EIO;
  struct rocefs_request request = {
      .op = ROCEFS_OP_RESIZE_CQ, .u.resize_cq = {.handle = ibv->handle, .entries = (uint32_t)cqe}};
  struct rocefs_answer answer;
  int fd;
  pthread_mutex_lock(&cq->lock);
  struct rocefs_cq_page* before = cq->page;
  size_t size = cq->size;
  int error = rocefs_request_passing(context, &request, -1, &answer, &fd, 1);
  if (!error) {
    error = map_cq(cq, &answer.u.created, fd);
    if (!error)
      munmap(before, size);
    else /* the engine has left the present memory */
      rocefs_distrust(context, "memory that cannot be");
  }
  pthread_mutex_unlock(&cq->lock);
  return error;
}

void rocefs_clean_cq(struct ibv_cq* ibv, uint32_t qpn) {
  struct rocefs_cq* cq = rocefs_cq_of(ibv);
  pthread_mutex_lock(&cq->lock);
  uint32_t begin = cq->page->consumed;
  /* Compacts from newest to oldest, towards the end: the engine may add entries there meanwhile. */
  uint32_t from = begin + rocefs_count_completions(cq, begin), to = from;
  while (from != begin) {
    const struct rocefs_cqe* cqe = &cq->entries[--from & cq->mask];
    if (cqe->qpn == qpn) continue;
    --to;
    if (to != from) cq->entries[to & cq->mask] = *cqe;
  }
  __atomic_store_n(&cq->page->consumed, to, __ATOMIC_RELEASE);
  pthread_mutex_unlock(&cq->lock);
}
