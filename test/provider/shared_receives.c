/* Shared receive queues. */
#include <errno.h>

#include "test/provider/verbs_test.h"

enum { kSharedDepth = 16, kPatienceMs = 60000 };

struct shared {
  struct ibv_cq *sends, *receives;
  struct ibv_srq* srq;
  struct ibv_qp* qp; /* connected to itself */
};

static struct shared make_shared(void) {
  struct shared shared = {.sends = ibv_create_cq(context, 64, NULL, NULL, 0),
                          .receives = ibv_create_cq(context, 64, NULL, NULL, 0)};
  struct ibv_srq_init_attr attr = {.attr = {.max_wr = kSharedDepth, .max_sge = 1}};
  shared.srq = ibv_create_srq(pd, &attr);
  REQUIRE(shared.sends && shared.receives && shared.srq);
  CHECK(attr.attr.max_wr == kSharedDepth);
  shared.qp = make_qp(shared.sends, shared.receives, IBV_QPT_RC, shared.srq);
  connect_qp(shared.qp, shared.qp->qp_num);
  return shared;
}

static int post_shared(struct shared* shared, uint64_t wr_id, int count) {
  struct ibv_sge sge = {(uintptr_t)memory + kReceiveAt, kReceiveSize, mr->lkey};
  struct ibv_recv_wr *bad = NULL, wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = count};
  int error = ibv_post_srq_recv(shared->srq, &wr, &bad);
  CHECK(!error || bad == &wr);
  return error;
}

static void fill(struct shared* shared) {
  for (unsigned i = 0; i < kSharedDepth; ++i) CHECK(!post_shared(shared, i, 1));
}

static void destroy_shared(struct shared* shared) {
  if (shared->qp) CHECK(!ibv_destroy_qp(shared->qp));
  CHECK(!ibv_destroy_srq(shared->srq));
  CHECK(!ibv_destroy_cq(shared->sends));
  CHECK(!ibv_destroy_cq(shared->receives));
}

static void refused(void) {
  struct shared shared = make_shared();
  CHECK(post_receive(shared.qp, 1, 1) == EINVAL); /* no receive queue of its own */
  CHECK(post_shared(&shared, 1, 2) == EINVAL);
  fill(&shared);
  CHECK(post_shared(&shared, 1, 1) == ENOMEM);
  CHECK(ibv_destroy_srq(shared.srq) == EBUSY);
  destroy_shared(&shared);
}

static void in_order(void) {
  struct shared shared = make_shared();
  fill(&shared);
  for (unsigned i = 0; i < 2 * kSharedDepth; ++i) {
    CHECK(!post_send(shared.qp, 99, IBV_WR_SEND, IBV_SEND_SIGNALED, 1, 8));
    expect_completion(shared.receives, i % kSharedDepth);
    expect_completion(shared.sends, 99);
    CHECK(!post_shared(&shared, i % kSharedDepth, 1)); /* polled completions make room */
  }
  destroy_shared(&shared);
}

static void attributes(void) {
  struct shared shared = make_shared();
  struct ibv_srq_attr attr = {.srq_limit = kSharedDepth};
  CHECK(!ibv_modify_srq(shared.srq, &attr, IBV_SRQ_LIMIT));
  CHECK(ibv_modify_srq(shared.srq, &attr, IBV_SRQ_MAX_WR) == EOPNOTSUPP);
  CHECK(!ibv_query_srq(shared.srq, &attr));
  CHECK(attr.srq_limit == kSharedDepth && attr.max_wr == kSharedDepth);
  attr.srq_limit = kSharedDepth + 1;
  CHECK(ibv_modify_srq(shared.srq, &attr, IBV_SRQ_LIMIT) == EINVAL);
  destroy_shared(&shared);
}

static void reach_limit(struct shared* shared) {
  struct ibv_srq_attr attr = {.srq_limit = kSharedDepth};
  fill(shared);
  CHECK(!ibv_modify_srq(shared->srq, &attr, IBV_SRQ_LIMIT));
  CHECK(!post_send(shared->qp, 2, IBV_WR_SEND, 0, 1, 8));
  REQUIRE(is_readable(context->async_fd, kPatienceMs));
}

static void limit(void) {
  struct shared shared = make_shared();
  struct ibv_async_event event;
  struct ibv_srq_attr attr;
  reach_limit(&shared);
  REQUIRE(!ibv_get_async_event(context, &event));
  CHECK(event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED && event.element.srq == shared.srq);
  ibv_ack_async_event(&event);
  CHECK(!ibv_query_srq(shared.srq, &attr) && attr.srq_limit == 0); /* reported once */
  destroy_shared(&shared);
}

static void stale_limit(void) {
  struct shared shared = make_shared(), other = make_shared();
  struct ibv_async_event event;
  reach_limit(&shared);
  reach_limit(&other);
  await_events_told();
  CHECK(!ibv_destroy_qp(shared.qp));
  shared.qp = NULL;
  destroy_shared(&shared);
  REQUIRE(is_readable(context->async_fd, kPatienceMs));
  REQUIRE(!ibv_get_async_event(context, &event));
  CHECK(event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED && event.element.srq == other.srq);
  ibv_ack_async_event(&event);
  await_events_told();
  CHECK(!is_readable(context->async_fd, 0));
  destroy_shared(&other);
}

const struct verbs_case kSharedReceiveCases[] = {
    {"a shared receive queue refuses what is malformed or too much", refused},
    {"receives of a shared queue are used in their order, and their slots again", in_order},
    {"only the limit of a shared queue can be changed", attributes},
    {"a shared queue below its limit is told of, once", limit},
    {"an event of a shared queue that is destroyed goes with it, those of others stay",
     stale_limit},
    {0},
};
