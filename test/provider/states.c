/* Queue pairs that change state, or are destroyed, with requests and completions left. */
#include <errno.h>

#include "test/provider/verbs_test.h"

static void states_that_take_none(void) {
  struct pair pair = make_pair(IBV_QPT_RC);
  CHECK(post_send(pair.a, 1, IBV_WR_SEND, 0, 1, 8) == EINVAL);
  CHECK(post_receive(pair.a, 1, 1) == EINVAL);
  CHECK(!move_qp(pair.a, IBV_QPS_INIT, 0));
  CHECK(post_send(pair.a, 1, IBV_WR_SEND, 0, 1, 8) == EINVAL);
  CHECK(!post_receive(pair.a, 100, 1));
  CHECK(!move_qp(pair.a, IBV_QPS_RTR, pair.b->qp_num));
  CHECK(post_send(pair.a, 1, IBV_WR_SEND, 0, 1, 8) == EINVAL);
  CHECK(move_qp(pair.a, IBV_QPS_RTR, pair.b->qp_num) == EINVAL);
  CHECK(!move_qp(pair.a, IBV_QPS_RTS, 0));
  connect_qp(pair.b, pair.a->qp_num);
  CHECK(!post_send(pair.b, 5, IBV_WR_SEND, IBV_SEND_SIGNALED, 1, 8));
  expect_completion(pair.receives, 100); /* posted in INIT */
  expect_completion(pair.sends, 5);
  destroy_pair(&pair);
}

static void query(void) {
  struct pair pair = make_pair(IBV_QPT_RC);
  connect_pair(&pair);
  struct ibv_qp_attr attr;
  struct ibv_qp_init_attr init;
  CHECK(!ibv_query_qp(pair.a, &attr, IBV_QP_STATE, &init));
  CHECK(attr.qp_state == IBV_QPS_RTS && attr.dest_qp_num == pair.b->qp_num);
  CHECK(attr.ah_attr.is_global && attr.ah_attr.grh.sgid_index == 1);
  CHECK(attr.ah_attr.grh.flow_label == 0x12345 && attr.ah_attr.grh.hop_limit == 64);
  CHECK(attr.path_mtu == IBV_MTU_1024 && attr.timeout == 14 && attr.retry_cnt == 7);
  CHECK(init.send_cq == pair.sends && init.recv_cq == pair.receives && !init.srq);
  CHECK(init.cap.max_send_wr == kDepth && init.cap.max_inline_data == inline_size);
  destroy_pair(&pair);
}

/* Sends from one to the other; the completion is there and not polled. */
static void complete_send(struct pair* pair, struct ibv_qp* from, struct ibv_qp* to) {
  REQUIRE(!ibv_req_notify_cq(pair->sends, 0));
  REQUIRE(!post_receive(to, 1, 1));
  REQUIRE(!post_send(from, 1, IBV_WR_SEND, IBV_SEND_SIGNALED, 1, 8));
  take_event(pair->channel, pair->sends);
}

/* Puts completions of `gone`, and as many of `stays`, into both queues. */
static void mix(struct pair* pair) {
  for (int i = 0; i < 3; ++i) {
    complete_send(pair, pair->a, pair->b);
    complete_send(pair, pair->b, pair->a);
  }
}

static void expect_only(struct ibv_cq* cq, uint32_t qpn) {
  struct ibv_wc wc;
  for (int i = 0; i < 3; ++i) CHECK(next_completion(cq).qp_num == qpn);
  CHECK(ibv_poll_cq(cq, 1, &wc) == 0);
}

static void reset_forgets(void) {
  struct pair pair = make_pair(IBV_QPT_RC);
  connect_pair(&pair);
  mix(&pair);
  CHECK(!post_receive(pair.a, 77, 1)); /* stays unused */
  CHECK(!move_qp(pair.a, IBV_QPS_RESET, 0));
  expect_only(pair.sends, pair.b->qp_num);
  expect_only(pair.receives, pair.b->qp_num);
  CHECK(post_send(pair.a, 1, IBV_WR_SEND, 0, 1, 8) == EINVAL);

  /* State after RESET: every slot is free, and no earlier completion comes. */
  CHECK(!move_qp(pair.b, IBV_QPS_RESET, 0));
  connect_pair(&pair);
  for (unsigned i = 0; i < kDepth; ++i) CHECK(!post_receive(pair.a, 500 + i, 1));
  for (unsigned i = 0; i < kDepth; ++i)
    CHECK(!post_send(pair.b, 600 + i, IBV_WR_SEND, IBV_SEND_SIGNALED, 1, 8));
  for (unsigned i = 0; i < kDepth; ++i) {
    expect_completion(pair.receives, 500 + i);
    expect_completion(pair.sends, 600 + i);
  }
  destroy_pair(&pair);
}

static void destroy_forgets(void) {
  struct pair pair = make_pair(IBV_QPT_RC);
  connect_pair(&pair);
  mix(&pair);
  CHECK(!ibv_destroy_qp(pair.b));
  pair.b = NULL;
  expect_only(pair.sends, pair.a->qp_num);
  expect_only(pair.receives, pair.a->qp_num);
  destroy_pair(&pair);
}

static void error_flushes(void) {
  struct pair pair = make_pair(IBV_QPT_RC);
  connect_pair(&pair);
  for (unsigned i = 0; i < kDepth; ++i) CHECK(!post_receive(pair.a, i, 1));
  CHECK(!post_send(pair.a, 50, IBV_WR_SEND, 0, 1, 8)); /* b has no receive: it waits */
  CHECK(!move_qp(pair.a, IBV_QPS_ERR, 0));
  for (unsigned i = 0; i < kDepth; ++i) {
    struct ibv_wc wc = next_completion(pair.receives);
    CHECK(wc.wr_id == i && wc.status == IBV_WC_WR_FLUSH_ERR);
  }
  CHECK(next_completion(pair.sends).status == IBV_WC_WR_FLUSH_ERR);
  CHECK(!post_receive(pair.a, 60, 1)); /* accepted, and flushed at once */
  CHECK(next_completion(pair.receives).wr_id == 60);
  CHECK(!post_send(pair.a, 61, IBV_WR_SEND, 0, 1, 8));
  CHECK(next_completion(pair.sends).wr_id == 61);
  destroy_pair(&pair);
}

const struct verbs_case kStateCases[] = {
    {"states that take no requests refuse them", states_that_take_none},
    {"query_qp tells what was asked for", query},
    {"a reset forgets requests and completions, of that queue pair alone", reset_forgets},
    {"a queue pair that is destroyed takes its completions along", destroy_forgets},
    {"in the error state all is flushed, also what comes later", error_flushes},
    {0},
};
