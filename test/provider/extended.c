/* Extended posting and polling, resizing of queues, multicast groups. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "test/provider/verbs_test.h"

enum { kFar = 128 << 10 };

static struct ibv_qp_ex* make_ex(struct ibv_cq* cq, enum ibv_qp_type type, uint64_t operations) {
  struct ibv_qp_init_attr_ex attr = {
      .send_cq = cq,
      .recv_cq = cq,
      .cap = {kDepth, kDepth, kMaxSge, kMaxSge, kInline},
      .qp_type = type,
      .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
      .pd = pd,
      .send_ops_flags = operations};
  struct ibv_qp* qp = ibv_create_qp_ex(context, &attr);
  return qp ? ibv_qp_to_qp_ex(qp) : NULL;
}

static const uint64_t kAllOperations =
    IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |
    IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
    IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW |
    IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_ATOMIC_WRITE;

struct looped { /* connected to itself */
  struct ibv_cq* cq;
  struct ibv_qp_ex* ex;
};
static struct looped make_looped(void) {
  struct looped looped = {.cq = ibv_create_cq(context, 64, NULL, NULL, 0)};
  looped.ex = make_ex(looped.cq, IBV_QPT_RC, kAllOperations);
  REQUIRE(looped.ex);
  connect_qp(&looped.ex->qp_base, looped.ex->qp_base.qp_num);
  looped.ex->wr_flags = IBV_SEND_SIGNALED;
  return looped;
}
static void destroy_looped(struct looped* looped) {
  CHECK(!ibv_destroy_qp(&looped->ex->qp_base));
  CHECK(!ibv_destroy_cq(looped->cq));
}

static void all_builders(void) {
  struct looped looped = make_looped();
  struct ibv_qp_ex* ex = looped.ex;
  uint64_t* number = (uint64_t*)(void*)(memory + kFar + 1024);
  uint64_t* found = (uint64_t*)(void*)(memory + 2048);
  const struct ibv_data_buf parts[] = {{(char[]){"he"}, 2}, {(char[]){"llo"}, 4}};
  const struct ibv_sge halves[] = {{(uintptr_t)memory, 4, mr->lkey},
                                   {(uintptr_t)memory + 4, 4, mr->lkey}};
  uint64_t value = 0x1122334455667788;
  memcpy(memory, "abcdefg", 8);
  *number = 40;
  ibv_wr_start(ex);
  ex->wr_id = 1;
  ibv_wr_rdma_write(ex, mr->rkey, (uintptr_t)memory + kFar);
  ibv_wr_set_sge_list(ex, 2, halves);
  ex->wr_id = 2;
  ibv_wr_rdma_write(ex, mr->rkey, (uintptr_t)memory + kFar + 512);
  ibv_wr_set_inline_data_list(ex, 2, parts);
  ex->wr_id = 3;
  ibv_wr_atomic_fetch_add(ex, mr->rkey, (uintptr_t)number, 2);
  ibv_wr_set_sge(ex, mr->lkey, (uintptr_t)found, 8);
  ex->wr_id = 4;
  ibv_wr_atomic_cmp_swp(ex, mr->rkey, (uintptr_t)number, 42, 7);
  ibv_wr_set_sge(ex, mr->lkey, (uintptr_t)(found + 1), 8);
  ex->wr_id = 5;
  ibv_wr_rdma_read(ex, mr->rkey, (uintptr_t)memory + kFar);
  ibv_wr_set_sge(ex, mr->lkey, (uintptr_t)memory + 3072, 8);
  ex->wr_id = 6;
  ibv_wr_atomic_write(ex, mr->rkey, (uintptr_t)(number + 1), &value);
  value = 0; /* it has been taken */
  CHECK(!ibv_wr_complete(ex));
  for (unsigned i = 1; i <= 5; ++i) expect_completion(looped.cq, i);
  CHECK(next_completion(looped.cq).opcode == IBV_WC_ATOMIC_WRITE);
  CHECK(number[1] == 0x1122334455667788);
  CHECK(!memcmp(memory + kFar, "abcdefg", 8) && !strcmp(memory + kFar + 512, "hello"));
  CHECK(found[0] == 40 && found[1] == 42 && *number == 7);
  CHECK(!memcmp(memory + 3072, "abcdefg", 8));
  destroy_looped(&looped);
}

static void received(void) {
  struct looped looped = make_looped();
  struct ibv_qp_ex* ex = looped.ex;
  for (unsigned i = 0; i < 3; ++i) REQUIRE(!post_receive(&ex->qp_base, i, 1));
  ex->wr_flags = 0;
  ibv_wr_start(ex);
  ibv_wr_send(ex);
  ibv_wr_set_inline_data(ex, (char[]){"one"}, 4);
  ibv_wr_send_imm(ex, htobe32(77));
  ibv_wr_set_sge(ex, mr->lkey, (uintptr_t)memory, 5);
  ibv_wr_rdma_write_imm(ex, mr->rkey, (uintptr_t)memory + kFar, htobe32(78));
  ibv_wr_set_sge(ex, mr->lkey, (uintptr_t)memory, 6);
  CHECK(!ibv_wr_complete(ex));
  struct ibv_wc wc = next_completion(looped.cq);
  CHECK(wc.opcode == IBV_WC_RECV && wc.byte_len == 4);
  wc = next_completion(looped.cq);
  CHECK((wc.wc_flags & IBV_WC_WITH_IMM) && wc.imm_data == htobe32(77) && wc.byte_len == 5);
  wc = next_completion(looped.cq);
  CHECK(wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && wc.imm_data == htobe32(78));
  destroy_looped(&looped);
}

static void bound_by_builder(void) {
  struct looped looped = make_looped();
  struct ibv_qp_ex* ex = looped.ex;
  struct ibv_mr* region =
      ibv_reg_mr(pd, memory + kFar, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
  struct ibv_mw* mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
  struct ibv_mw_bind_info info = {region, (uintptr_t)memory + kFar, 64, IBV_ACCESS_REMOTE_WRITE};
  uint32_t key = ibv_inc_rkey(mw->rkey);
  ibv_wr_start(ex);
  ex->wr_id = 1;
  ibv_wr_bind_mw(ex, mw, key, &info);
  ex->wr_id = 2;
  ibv_wr_rdma_write(ex, key, (uintptr_t)memory + kFar);
  ibv_wr_set_sge(ex, mr->lkey, (uintptr_t)memory, 8);
  ex->wr_id = 3;
  ex->wr_flags |= IBV_SEND_FENCE;
  ibv_wr_local_inv(ex, key);
  CHECK(!ibv_wr_complete(ex));
  expect_completion(looped.cq, 1);
  struct ibv_wc wc = next_completion(looped.cq);
  CHECK(wc.wr_id == 2); /* the invalidation may overtake requests in progress */
  wc = next_completion(looped.cq);
  CHECK(wc.wr_id == 3);
  CHECK(!ibv_dealloc_mw(mw) && !ibv_dereg_mr(region));
  destroy_looped(&looped);
}

static void builders_refuse(void) {
  struct looped looped = make_looped();
  struct ibv_qp_ex* ex = looped.ex;
  char much[4096] = {0};
  struct ibv_wc wc;
  ibv_wr_start(ex);
  ibv_wr_rdma_write(ex, mr->rkey, (uintptr_t)memory + kFar);
  ibv_wr_set_sge(ex, mr->lkey, (uintptr_t)memory, 8);
  ibv_wr_rdma_write(ex, mr->rkey, (uintptr_t)memory + kFar);
  ibv_wr_set_inline_data(ex, much, sizeof much);
  CHECK(ibv_wr_complete(ex) == EINVAL);
  ibv_wr_start(ex);
  ibv_wr_rdma_read(ex, mr->rkey, (uintptr_t)memory + kFar);
  ibv_wr_set_inline_data(ex, much, 8);
  CHECK(ibv_wr_complete(ex) == EINVAL);
  ibv_wr_start(ex);
  for (unsigned i = 0; i <= kDepth; ++i) {
    ibv_wr_rdma_write(ex, mr->rkey, (uintptr_t)memory + kFar);
    ibv_wr_set_sge(ex, mr->lkey, (uintptr_t)memory, 8);
  }
  CHECK(ibv_wr_complete(ex) == ENOMEM);
  ibv_wr_start(ex);
  ibv_wr_rdma_write(ex, mr->rkey, (uintptr_t)memory + kFar);
  ibv_wr_abort(ex);
  await_events_told();
  CHECK(ibv_poll_cq(looped.cq, 1, &wc) == 0); /* nothing was posted */
  CHECK(!move_qp(&ex->qp_base, IBV_QPS_RESET, 0));
  ibv_wr_start(ex);
  ibv_wr_send(ex);
  CHECK(ibv_wr_complete(ex) == EINVAL);
  destroy_looped(&looped);
}

static void unknown_operations(void) {
  struct ibv_cq* cq = ibv_create_cq(context, 4, NULL, NULL, 0);
  errno = 0;
  CHECK(!make_ex(cq, IBV_QPT_UD, IBV_QP_EX_WITH_RDMA_WRITE) && errno == EOPNOTSUPP);
  errno = 0;
  CHECK(!make_ex(cq, IBV_QPT_UC, IBV_QP_EX_WITH_RDMA_READ) && errno == EOPNOTSUPP);
  errno = 0;
  CHECK(!make_ex(cq, IBV_QPT_RC, IBV_QP_EX_WITH_TSO) && errno == EOPNOTSUPP);
  errno = 0;
  CHECK(!make_ex(cq, IBV_QPT_UC, IBV_QP_EX_WITH_ATOMIC_WRITE) && errno == EOPNOTSUPP);
  CHECK(!ibv_destroy_cq(cq));
}

static struct ibv_cq_ex* make_cq_ex(uint32_t entries) {
  struct ibv_cq_init_attr_ex attr = {.cqe = entries, .wc_flags = IBV_WC_STANDARD_FLAGS};
  struct ibv_cq_ex* cq = ibv_create_cq_ex(context, &attr);
  REQUIRE(cq);
  return cq;
}

static int start(struct ibv_cq_ex* cq) {
  struct ibv_poll_cq_attr attr = {0};
  return ibv_start_poll(cq, &attr);
}
static void await_start(struct ibv_cq_ex* cq) {
  int error;
  while ((error = start(cq)) == ENOENT) {
  }
  REQUIRE(!error);
}

static void extended_cq(void) {
  struct ibv_cq_ex* cq = make_cq_ex(16);
  struct ibv_qp* qp = make_qp(ibv_cq_ex_to_cq(cq), ibv_cq_ex_to_cq(cq), IBV_QPT_RC, NULL);
  connect_qp(qp, qp->qp_num);
  CHECK(start(cq) == ENOENT);
  REQUIRE(!post_receive(qp, 5, 1));
  struct ibv_sge sge = {(uintptr_t)memory, 9, mr->lkey};
  struct ibv_send_wr *bad, wr = {.wr_id = 6, .sg_list = &sge, .num_sge = 1};
  wr.opcode = IBV_WR_SEND_WITH_IMM;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.imm_data = htobe32(99);
  REQUIRE(!ibv_post_send(qp, &wr, &bad));
  await_start(cq);
  CHECK(cq->wr_id == 5 && cq->status == IBV_WC_SUCCESS);
  CHECK(ibv_wc_read_opcode(cq) == IBV_WC_RECV && ibv_wc_read_byte_len(cq) == 9);
  CHECK(ibv_wc_read_wc_flags(cq) == IBV_WC_WITH_IMM);
  CHECK(ibv_wc_read_imm_data(cq) == htobe32(99) && ibv_wc_read_qp_num(cq) == qp->qp_num);
  CHECK(ibv_wc_read_slid(cq) == 0 && ibv_wc_read_sl(cq) == 0 && ibv_wc_read_vendor_err(cq) == 0);
  while (ibv_next_poll(cq) == ENOENT) {
  }
  CHECK(cq->wr_id == 6 && ibv_wc_read_opcode(cq) == IBV_WC_SEND);
  CHECK(ibv_next_poll(cq) == ENOENT);
  ibv_end_poll(cq);
  CHECK(start(cq) == ENOENT);
  for (unsigned i = 0; i < 3 * kDepth; ++i) { /* slots become free as by ibv_poll_cq() */
    CHECK(!post_send(qp, i, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 1, 8));
    await_start(cq);
    CHECK(cq->wr_id == i);
    ibv_end_poll(cq);
  }
  CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
}

static void extended_cqs_refused(void) {
  static const struct ibv_cq_init_attr_ex kRefused[] = {
      {.cqe = 4, .wc_flags = IBV_WC_EX_WITH_TM_INFO},
      {.cqe = 4,
       .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
       .flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN}};
  for (unsigned i = 0; i < sizeof kRefused / sizeof kRefused[0]; ++i) {
    struct ibv_cq_init_attr_ex attr = kRefused[i];
    errno = 0;
    CHECK(!ibv_create_cq_ex(context, &attr) && errno == EOPNOTSUPP);
  }
}

static void resized(void) {
  struct pair pair = make_pair(IBV_QPT_RC);
  connect_pair(&pair);
  CHECK(ibv_resize_cq(pair.sends, 0) == EINVAL && ibv_resize_cq(pair.sends, 1 << 30) == EINVAL);
  for (unsigned i = 0; i < 3; ++i) {
    REQUIRE(!ibv_req_notify_cq(pair.sends, 0));
    CHECK(!post_send(pair.a, i, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 1, 8));
    take_event(pair.channel, pair.sends);
  }
  CHECK(ibv_resize_cq(pair.sends, 2) == EINVAL); /* it holds three */
  REQUIRE(!ibv_req_notify_cq(pair.sends, 0));
  CHECK(!ibv_resize_cq(pair.sends, 4) && pair.sends->cqe == 4);
  expect_completion(pair.sends, 0);
  CHECK(!post_send(pair.a, 3, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 1, 8));
  take_event(pair.channel, pair.sends); /* still armed */
  CHECK(!ibv_resize_cq(pair.sends, 1000) && pair.sends->cqe == 1024);
  for (unsigned i = 1; i < 4; ++i) expect_completion(pair.sends, i);
  for (unsigned i = 0; i < 100; ++i) {
    CHECK(!post_send(pair.a, i, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 1, 8));
    expect_completion(pair.sends, i);
  }
  destroy_pair(&pair);
}

static int send_to_group(struct ibv_qp* qp, const union ibv_gid* group) {
  struct ibv_ah_attr attr = own_address();
  attr.grh.sgid_index = 0; /* link-local, as the group is of IPv6 */
  attr.grh.dgid = *group;
  struct ibv_ah* ah = ibv_create_ah(pd, &attr);
  REQUIRE(ah);
  struct ibv_sge sge = {(uintptr_t)memory, 6, mr->lkey};
  struct ibv_send_wr *bad, wr = {.wr_id = 2, .sg_list = &sge, .num_sge = 1};
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.ud.ah = ah;
  wr.wr.ud.remote_qpn = 0xffffff;
  int error = ibv_post_send(qp, &wr, &bad);
  CHECK(!ibv_destroy_ah(ah));
  return error;
}

static void multicast(void) {
  union ibv_gid group = {.raw = {0xff, 0x0e, [15] = 9}}, other = {.raw = {0xff, 0x0e, [15] = 8}};
  union ibv_gid unicast = {.raw = {0xfe, 0x80, [15] = 9}};
  struct pair pair = make_pair(IBV_QPT_UD), rc = make_pair(IBV_QPT_RC);
  connect_pair(&pair);
  CHECK(ibv_attach_mcast(rc.a, &group, 0) == EINVAL);
  CHECK(ibv_attach_mcast(pair.a, &unicast, 0) == EINVAL);
  CHECK(ibv_detach_mcast(pair.a, &group, 0) == EINVAL);
  CHECK(!ibv_attach_mcast(pair.a, &group, 0) && !ibv_attach_mcast(pair.a, &group, 0));
  CHECK(!ibv_attach_mcast(pair.b, &group, 0));
  CHECK(ibv_destroy_qp(pair.b) == EBUSY);
  strcpy(memory, "hello");
  REQUIRE(!post_receive(pair.a, 10, 1) && !post_receive(pair.b, 11, 1));
  REQUIRE(!send_to_group(pair.a, &other)); /* no member */
  expect_completion(pair.sends, 2);
  REQUIRE(!send_to_group(pair.a, &group));
  expect_completion(pair.sends, 2);
  unsigned seen = 0; /* each once, in any order */
  for (int i = 0; i < 2; ++i) {
    struct ibv_wc wc = next_completion(pair.receives);
    CHECK(wc.status == IBV_WC_SUCCESS && (wc.wc_flags & IBV_WC_GRH) && wc.byte_len == 46);
    CHECK(wc.src_qp == pair.a->qp_num);
    seen |= 1u << (wc.wr_id - 10);
  }
  CHECK(seen == 3 && !strcmp(memory + kReceiveAt + 40, "hello"));
  CHECK(!ibv_detach_mcast(pair.b, &group, 0));
  REQUIRE(!post_receive(pair.a, 12, 1) && !post_receive(pair.b, 13, 1));
  REQUIRE(!send_to_group(pair.a, &group));
  expect_completion(pair.sends, 2);
  CHECK(next_completion(pair.receives).wr_id == 12);
  CHECK(!ibv_detach_mcast(pair.a, &group, 0));
  destroy_pair(&pair);
  destroy_pair(&rc);
}

const struct verbs_case kExtendedCases[] = {
    {"ibv_wr_*() post what they build, in its order", all_builders},
    {"what ibv_wr_*() send is received", received},
    {"ibv_wr_*() bind and invalidate a window", bound_by_builder},
    {"after an error of ibv_wr_*(), or an abort, nothing is posted", builders_refuse},
    {"a queue pair is not made for operations that it has not got", unknown_operations},
    {"a completion queue is read field by field", extended_cq},
    {"fields and ways of completion queues that there are not are refused", extended_cqs_refused},
    {"a completion queue changes its size with what it holds", resized},
    {"a datagram to a group comes to each that is attached, once", multicast},
    {0},
};
