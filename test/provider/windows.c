/* Memory windows, and regions that change. */
#include <errno.h>
#include <string.h>

#include "test/provider/verbs_test.h"

enum { kFar = 128 << 10, kRemote = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ };

static struct ibv_mr* bindable;

/* Status of a WRITE of 8 bytes with that key. */
static enum ibv_wc_status write_by(struct pair* pair, struct ibv_qp* from, uint32_t rkey,
                                   size_t offset) {
  struct ibv_sge sge = {(uintptr_t)memory, 8, mr->lkey};
  struct ibv_send_wr *bad, wr = {.wr_id = 9, .sg_list = &sge, .num_sge = 1};
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.rdma.remote_addr = (uintptr_t)memory + kFar + offset;
  wr.wr.rdma.rkey = rkey;
  REQUIRE(!ibv_post_send(from, &wr, &bad));
  return next_completion(pair->sends).status;
}

static enum ibv_wc_status outcome(struct pair* pair, struct ibv_qp* qp, struct ibv_send_wr* wr) {
  struct ibv_send_wr* bad;
  wr->send_flags = IBV_SEND_SIGNALED;
  REQUIRE(!ibv_post_send(qp, wr, &bad));
  return next_completion(pair->sends).status;
}

static struct ibv_send_wr bind_request(struct ibv_mw* mw, uint32_t rkey) {
  struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_BIND_MW};
  wr.bind_mw.mw = mw;
  wr.bind_mw.rkey = rkey;
  wr.bind_mw.bind_info = (struct ibv_mw_bind_info){bindable, (uintptr_t)memory + kFar, 64, kRemote};
  return wr;
}

static struct pair begin(void) {
  struct pair pair = make_pair(IBV_QPT_RC);
  connect_pair(&pair);
  bindable = ibv_reg_mr(pd, memory + kFar, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
  REQUIRE(bindable);
  return pair;
}
static void end(struct pair* pair) {
  CHECK(!ibv_dereg_mr(bindable));
  destroy_pair(pair);
}

static void type_2(void) {
  struct pair pair = begin();
  struct ibv_mw* mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
  REQUIRE(mw && mw->type == IBV_MW_TYPE_2 && mw->pd == pd);
  uint32_t key = ibv_inc_rkey(mw->rkey);
  struct ibv_send_wr wr = bind_request(mw, key);
  CHECK(outcome(&pair, pair.b, &wr) == IBV_WC_SUCCESS);
  CHECK(mw->rkey == key);
  CHECK(ibv_dereg_mr(bindable) == EBUSY); /* a window is bound to it */
  memset(memory + kFar, 0, 64);
  memset(memory, 7, 8);
  CHECK(write_by(&pair, pair.a, key, 56) == IBV_WC_SUCCESS);
  CHECK(!memcmp(memory + kFar + 56, memory, 8));
  wr = bind_request(mw, ibv_inc_rkey(key)); /* an existing binding must be invalidated first */
  CHECK(outcome(&pair, pair.b, &wr) == IBV_WC_MW_BIND_ERR);
  CHECK(!ibv_dealloc_mw(mw));
  end(&pair);
}

/* As of mlx5 and rxe: the low octet of the given key counts, and a local right is taken. */
static void lenient(void) {
  struct pair pair = begin();
  struct ibv_mw* mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
  uint32_t key = (mw->rkey & ~0xffu) | ((mw->rkey + 3) & 0xff);
  struct ibv_send_wr wr = bind_request(mw, key & 0xff);
  wr.bind_mw.bind_info.mw_access_flags |= IBV_ACCESS_LOCAL_WRITE;
  CHECK(outcome(&pair, pair.b, &wr) == IBV_WC_SUCCESS);
  CHECK(write_by(&pair, pair.a, key, 0) == IBV_WC_SUCCESS);
  CHECK(!ibv_dealloc_mw(mw));
  end(&pair);
}

static void invalidations(void) {
  struct pair pair = begin();
  struct ibv_mw* mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
  uint32_t key = ibv_inc_rkey(mw->rkey);
  struct ibv_send_wr wr = bind_request(mw, key);
  CHECK(outcome(&pair, pair.b, &wr) == IBV_WC_SUCCESS);
  wr = (struct ibv_send_wr){.opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = key};
  CHECK(outcome(&pair, pair.b, &wr) == IBV_WC_SUCCESS);
  key = ibv_inc_rkey(key);
  wr = bind_request(mw, key);
  CHECK(outcome(&pair, pair.b, &wr) == IBV_WC_SUCCESS);
  REQUIRE(!post_receive(pair.b, 3, 1));
  wr = (struct ibv_send_wr){.opcode = IBV_WR_SEND_WITH_INV, .invalidate_rkey = key};
  CHECK(outcome(&pair, pair.a, &wr) == IBV_WC_SUCCESS);
  struct ibv_wc wc = next_completion(pair.receives);
  CHECK((wc.wc_flags & IBV_WC_WITH_INV) && wc.invalidated_rkey == key);
  CHECK(write_by(&pair, pair.a, key, 0) == IBV_WC_REM_ACCESS_ERR);
  CHECK(!ibv_dealloc_mw(mw));
  end(&pair);
}

static int bind_type_1(struct ibv_qp* qp, struct ibv_mw* mw, uint64_t length) {
  struct ibv_mw_bind bind = {.wr_id = 4, .send_flags = IBV_SEND_SIGNALED};
  bind.bind_info = (struct ibv_mw_bind_info){bindable, (uintptr_t)memory + kFar, length, kRemote};
  return ibv_bind_mw(qp, mw, &bind);
}

static void type_1(void) {
  struct pair pair = begin();
  struct ibv_mw* mw = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
  REQUIRE(mw);
  uint32_t unbound = mw->rkey;
  CHECK(!bind_type_1(pair.a, mw, 64) && mw->rkey != unbound);
  expect_completion(pair.sends, 4);
  CHECK(write_by(&pair, pair.a, mw->rkey, 0) == IBV_WC_SUCCESS); /* b did not bind it */
  uint32_t before = mw->rkey;
  CHECK(!bind_type_1(pair.b, mw, 32)); /* bound anew, without invalidation */
  expect_completion(pair.sends, 4);
  CHECK(mw->rkey != before);
  CHECK(write_by(&pair, pair.b, mw->rkey, 24) == IBV_WC_SUCCESS);
  CHECK(!bind_type_1(pair.b, mw, 0)); /* unbound */
  expect_completion(pair.sends, 4);
  CHECK(write_by(&pair, pair.b, mw->rkey, 0) == IBV_WC_REM_ACCESS_ERR);
  CHECK(!ibv_dealloc_mw(mw));
  end(&pair);
}

static void binds_refused(void) {
  struct pair pair = begin();
  struct ibv_mw *one = ibv_alloc_mw(pd, IBV_MW_TYPE_1), *two = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
  struct ibv_send_wr *bad, wr = bind_request(one, ibv_inc_rkey(one->rkey));
  CHECK(ibv_post_send(pair.a, &wr, &bad) == EINVAL); /* needs ibv_bind_mw() */
  CHECK(bind_type_1(pair.a, two, 64) == EINVAL);     /* needs a request */
  wr = bind_request(two, ibv_inc_rkey(two->rkey));
  wr.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_ON_DEMAND;
  CHECK(ibv_post_send(pair.a, &wr, &bad) == EINVAL);
  struct ibv_mw_bind bind = {.bind_info = {bindable, (uintptr_t)memory + kFar, 64,
                                           IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ZERO_BASED}};
  CHECK(ibv_bind_mw(pair.a, one, &bind) == EINVAL);
  wr = bind_request(two, ibv_inc_rkey(two->rkey));
  wr.bind_mw.bind_info.mr = mr; /* without the right to be bound to */
  CHECK(outcome(&pair, pair.a, &wr) == IBV_WC_MW_BIND_ERR);
  errno = 0;
  CHECK(!ibv_alloc_mw(pd, (enum ibv_mw_type)3) && errno == EINVAL);
  struct ibv_pd* other = ibv_alloc_pd(context);
  struct ibv_mw* alien = ibv_alloc_mw(other, IBV_MW_TYPE_2);
  CHECK(ibv_dealloc_pd(other) == EBUSY);
  wr = bind_request(alien, ibv_inc_rkey(alien->rkey));
  CHECK(outcome(&pair, pair.b, &wr) == IBV_WC_MW_BIND_ERR);
  CHECK(!ibv_dealloc_mw(one) && !ibv_dealloc_mw(two) && !ibv_dealloc_mw(alien));
  CHECK(!ibv_dealloc_pd(other));
  end(&pair);
}

/* Zero based: both ends name the bytes by their offset, and a window by that in the window. */
static void zero_based(void) {
  struct pair pair = begin();
  const int rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED;
  struct ibv_mr* region = ibv_reg_mr(pd, memory + kFar + 4096, 4096, rights | IBV_ACCESS_MW_BIND);
  struct ibv_mw* mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
  REQUIRE(region && mw);
  uint32_t key = ibv_inc_rkey(mw->rkey);
  struct ibv_send_wr wr = bind_request(mw, key);
  wr.bind_mw.bind_info =
      (struct ibv_mw_bind_info){region, 1024, 64, kRemote | IBV_ACCESS_ZERO_BASED};
  CHECK(outcome(&pair, pair.b, &wr) == IBV_WC_SUCCESS);
  memset(memory + kFar, 0, 8192);
  memcpy(memory + kFar + 4096 + 8, "by name", 8);
  struct ibv_sge sge = {8, 8, region->lkey};
  wr = (struct ibv_send_wr){.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};
  wr.wr.rdma.remote_addr = 4088;
  wr.wr.rdma.rkey = region->rkey;
  CHECK(outcome(&pair, pair.a, &wr) == IBV_WC_SUCCESS);
  CHECK(!memcmp(memory + kFar + 8184, "by name", 8));
  wr.wr.rdma.remote_addr = 56;
  wr.wr.rdma.rkey = key;
  CHECK(outcome(&pair, pair.a, &wr) == IBV_WC_SUCCESS);
  CHECK(!memcmp(memory + kFar + 4096 + 1024 + 56, "by name", 8));
  CHECK(!ibv_dealloc_mw(mw));
  CHECK(ibv_rereg_mr(region, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE));
  CHECK(!ibv_rereg_mr(region, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, rights));
  wr.wr.rdma.remote_addr = 4089;
  wr.wr.rdma.rkey = region->rkey;
  CHECK(outcome(&pair, pair.a, &wr) == IBV_WC_REM_ACCESS_ERR);
  CHECK(!ibv_dereg_mr(region));
  end(&pair);
}

/* Window and region of another domain than the queue pair's: a bind error, as with a type 2 window.
 */
static void other_domain(void) {
  struct pair pair = begin();
  struct ibv_pd* other = ibv_alloc_pd(context);
  struct ibv_mw* mw = ibv_alloc_mw(other, IBV_MW_TYPE_1);
  struct ibv_mr* region =
      ibv_reg_mr(other, memory + kFar, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
  REQUIRE(other && mw && region);
  struct ibv_mw_bind bind = {.wr_id = 4, .send_flags = IBV_SEND_SIGNALED};
  bind.bind_info = (struct ibv_mw_bind_info){region, (uintptr_t)memory + kFar, 64, kRemote};
  CHECK(!ibv_bind_mw(pair.a, mw, &bind));
  CHECK(next_completion(pair.sends).status == IBV_WC_MW_BIND_ERR);
  CHECK(!ibv_dealloc_mw(mw) && !ibv_dereg_mr(region) && !ibv_dealloc_pd(other));
  end(&pair);
}

static void moves(void) {
  struct pair pair = make_pair(IBV_QPT_RC);
  connect_pair(&pair);
  struct ibv_mr* region =
      ibv_reg_mr(pd, memory + kFar, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  REQUIRE(region);
  CHECK(write_by(&pair, pair.a, region->rkey, 0) == IBV_WC_SUCCESS);
  CHECK(!ibv_rereg_mr(region, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, memory + kFar + 8192, 64, 0));
  CHECK(region->addr == memory + kFar + 8192 && region->length == 64);
  CHECK(write_by(&pair, pair.a, region->rkey, 8192) == IBV_WC_SUCCESS);
  CHECK(ibv_rereg_mr(region, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, (void*)8, 64, 0));
  CHECK(ibv_rereg_mr(region, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_REMOTE_WRITE));
  CHECK(write_by(&pair, pair.a, region->rkey, 8192) == IBV_WC_SUCCESS); /* unchanged */
  CHECK(write_by(&pair, pair.a, region->rkey, 0) == IBV_WC_REM_ACCESS_ERR);
  CHECK(!ibv_dereg_mr(region));
  destroy_pair(&pair);
}

static void changes(void) {
  struct ibv_pd* other = ibv_alloc_pd(context);
  for (int flag = IBV_REREG_MR_CHANGE_PD; flag <= IBV_REREG_MR_CHANGE_ACCESS; flag <<= 1) {
    struct pair pair = make_pair(IBV_QPT_RC);
    connect_pair(&pair);
    struct ibv_mr* region =
        ibv_reg_mr(pd, memory + kFar, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    bool moved = flag == IBV_REREG_MR_CHANGE_PD;
    int access = moved ? 0 : IBV_ACCESS_LOCAL_WRITE;
    uint32_t lkey = region->lkey, rkey = region->rkey;
    CHECK(!ibv_rereg_mr(region, flag, moved ? other : NULL, NULL, 0, access));
    CHECK(region->lkey == lkey && region->rkey == rkey);
    CHECK(region->pd == (moved ? other : pd));
    if (moved) CHECK(ibv_dealloc_pd(other) == EBUSY);
    CHECK(write_by(&pair, pair.a, region->rkey, 0) == IBV_WC_REM_ACCESS_ERR);
    CHECK(!ibv_dereg_mr(region));
    destroy_pair(&pair);
  }
  CHECK(!ibv_dealloc_pd(other));
}

const struct verbs_case kWindowCases[] = {
    {"a window of type 2 opens a part of a region by its queue pair, until it is invalid", type_2},
    {"a window takes the low octet of a key and a local right, as mlx5 and rxe do", lenient},
    {"a window is invalidated from near and from far", invalidations},
    {"a window of type 1 is its protection domain's, and bound again at will", type_1},
    {"bindings that do not fit are refused, or end with their error", binds_refused},
    {"a window of another domain than the queue pair's ends with a bind error", other_domain},
    {"the bytes of a zero based region or window are named by their offset", zero_based},
    {"a region moves, and stays as it was when it cannot", moves},
    {"a region changes its domain or its rights", changes},
    {0},
};
