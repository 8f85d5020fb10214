/* Asynchronous events; ibv_get_async_event(3). */
#include <errno.h>
#include <stdio.h>

#include "test/provider/verbs_test.h"

enum { kPatienceMs = 60000 };

static struct ibv_async_event next_event(void) {
  struct ibv_async_event event;
  REQUIRE(is_readable(context->async_fd, kPatienceMs));
  REQUIRE(!ibv_get_async_event(context, &event));
  ibv_ack_async_event(&event);
  return event;
}
static void expect_qp_event(enum ibv_event_type type, struct ibv_qp* qp) {
  struct ibv_async_event event = next_event();
  CHECK(event.event_type == type);
  CHECK(event.element.qp == qp);
}
static void expect_none(void) {
  await_events_told();
  CHECK(!is_readable(context->async_fd, 0));
}

static void established(void) {
  struct pair pair = make_pair(IBV_QPT_RC);
  CHECK(!move_qp(pair.b, IBV_QPS_INIT, 0) && !move_qp(pair.b, IBV_QPS_RTR, pair.a->qp_num));
  connect_qp(pair.a, pair.b->qp_num);
  CHECK(!post_send(pair.a, 1, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 1, 8));
  expect_completion(pair.sends, 1);
  expect_qp_event(IBV_EVENT_COMM_EST, pair.b);
  CHECK(!post_send(pair.a, 2, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 1, 8));
  expect_completion(pair.sends, 2);
  expect_none(); /* only once */
  destroy_pair(&pair);
}

static void responder_errors(void) {
  for (int access = 0; access < 2; ++access) {
    struct pair pair = make_pair(IBV_QPT_RC);
    connect_pair(&pair);
    struct ibv_sge sge = {(uintptr_t)memory, 8, mr->lkey};
    struct ibv_send_wr *bad, wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1};
    /* WRITE with an unknown key, or an atomic at an odd address. */
    wr.opcode = access ? IBV_WR_RDMA_WRITE : IBV_WR_ATOMIC_FETCH_AND_ADD;
    if (access) {
      wr.wr.rdma.remote_addr = (uintptr_t)memory;
      wr.wr.rdma.rkey = mr->rkey ^ 0xff00;
    } else {
      wr.wr.atomic.remote_addr = (uintptr_t)memory + 1;
      wr.wr.atomic.rkey = mr->rkey;
    }
    REQUIRE(!ibv_post_send(pair.a, &wr, &bad));
    CHECK(next_completion(pair.sends).status ==
          (access ? IBV_WC_REM_ACCESS_ERR : IBV_WC_REM_INV_REQ_ERR));
    expect_qp_event(access ? IBV_EVENT_QP_ACCESS_ERR : IBV_EVENT_QP_REQ_ERR, pair.b);
    expect_none();
    destroy_pair(&pair);
  }
}

static void lost_completion(void) {
  struct ibv_cq* tiny = ibv_create_cq(context, 1, NULL, NULL, 0);
  struct ibv_cq* other = ibv_create_cq(context, 16, NULL, NULL, 0);
  struct ibv_qp* qp = make_qp(tiny, other, IBV_QPT_RC, NULL);
  connect_qp(qp, qp->qp_num);
  for (unsigned i = 0; i < 2; ++i)
    CHECK(!post_send(qp, i, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 1, 8));
  struct ibv_async_event event = next_event();
  CHECK(event.event_type == IBV_EVENT_CQ_ERR && event.element.cq == tiny);
  expect_qp_event(IBV_EVENT_QP_FATAL, qp);
  CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(tiny) && !ibv_destroy_cq(other));
}

static bool is_draining(struct ibv_qp* qp) {
  struct ibv_qp_attr attr;
  struct ibv_qp_init_attr init;
  REQUIRE(!ibv_query_qp(qp, &attr, IBV_QP_STATE, &init));
  CHECK(attr.qp_state == IBV_QPS_SQD);
  return attr.sq_draining;
}
static int go_on(struct ibv_qp* qp) {
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};
  return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

static void drained(void) {
  struct pair pair = make_pair(IBV_QPT_RC);
  connect_pair(&pair);
  CHECK(!post_send(pair.a, 1, IBV_WR_SEND, IBV_SEND_SIGNALED, 1, 8)); /* b has no receive yet */
  for (;;) {
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
    CHECK(!ibv_modify_qp(pair.a, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
    if (is_draining(pair.a)) break;
    expect_qp_event(IBV_EVENT_SQ_DRAINED, pair.a); /* not begun, and not begun in SQD */
    CHECK(!go_on(pair.a));
  }
  expect_none();
  CHECK(!post_receive(pair.b, 1, 1));
  expect_completion(pair.sends, 1);
  expect_qp_event(IBV_EVENT_SQ_DRAINED, pair.a);
  CHECK(!is_draining(pair.a));
  CHECK(!post_send(pair.a, 2, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 1, 8)); /* waits for RTS */
  CHECK(!go_on(pair.a));
  expect_completion(pair.sends, 2);
  expect_none();
  destroy_pair(&pair);
}

static void last_receive(void) {
  struct ibv_cq* cq = ibv_create_cq(context, 16, NULL, NULL, 0);
  struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1}};
  struct ibv_srq* srq = ibv_create_srq(pd, &init);
  struct ibv_qp* qp = make_qp(cq, cq, IBV_QPT_RC, srq);
  connect_qp(qp, qp->qp_num);
  CHECK(!move_qp(qp, IBV_QPS_ERR, 0));
  expect_qp_event(IBV_EVENT_QP_LAST_WQE_REACHED, qp);
  CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_srq(srq) && !ibv_destroy_cq(cq));
}

const struct verbs_case kEventCases[] = {
    {"the first packet in RTR is told, once", established},
    {"what a responder refuses without a receive is told to its side", responder_errors},
    {"a completion that is lost is told of the queue and of the queue pair", lost_completion},
    {"a send queue that drains says so, and is told of when it has", drained},
    {"a queue pair in error has let go of its shared queue", last_receive},
    {0},
};

/* Cable is unplugged and plugged in again when the program has said so. */
static void port_changes(void) {
  struct ibv_port_attr attr;
  puts("ready");
  struct ibv_async_event event = next_event();
  CHECK(event.event_type == IBV_EVENT_PORT_ERR && event.element.port_num == 1);
  CHECK(!ibv_query_port(context, 1, &attr) && attr.state == IBV_PORT_DOWN);
  puts("ready");
  event = next_event();
  CHECK(event.event_type == IBV_EVENT_PORT_ACTIVE && event.element.port_num == 1);
  CHECK(!ibv_query_port(context, 1, &attr) && attr.state == IBV_PORT_ACTIVE);
}
const struct verbs_case kPortCases[] = {
    {"a port that goes down or comes up is told of", port_changes},
    {0},
};
