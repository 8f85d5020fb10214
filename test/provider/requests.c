/* Refusals of posts, and contents of posted requests. */
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "test/provider/verbs_test.h"

static void check_refused_cq(int entries, int vector) {
  errno = 0;
  CHECK(!ibv_create_cq(context, entries, NULL, NULL, vector) && errno == EINVAL);
}

static void cqs_refused(void) {
  check_refused_cq(10, 1);
  check_refused_cq(0, 0);
  check_refused_cq(-1, 0);
  check_refused_cq((1 << 22) + 1, 0);
  struct ibv_cq* large =
      ibv_create_cq(context, 262144, NULL, NULL, 0); /* as libfabric's rxm asks */
  CHECK(large && large->cqe >= 262144 && !ibv_destroy_cq(large));
}

static void qps_refused(void) {
  struct ibv_cq* cq = ibv_create_cq(context, 100, NULL, NULL, 0);
  REQUIRE(cq && cq->cqe >= 100);
  struct ibv_qp_init_attr attr = {
      .send_cq = cq, .recv_cq = cq, .cap = {4, 4, 1, 1, 0}, .qp_type = IBV_QPT_RAW_PACKET};
  errno = 0;
  CHECK(!ibv_create_qp(pd, &attr) && errno == EOPNOTSUPP);
  attr.qp_type = IBV_QPT_RC;
  attr.send_cq = NULL;
  errno = 0;
  CHECK(!ibv_create_qp(pd, &attr) && errno == EINVAL);
  attr.send_cq = cq;
  attr.cap.max_send_sge = 1000;
  errno = 0;
  CHECK(!ibv_create_qp(pd, &attr) && errno == EINVAL);
  CHECK(!ibv_destroy_cq(cq));
}

static void domain_in_use(void) {
  CHECK(ibv_dealloc_pd(pd) == EBUSY);
}

static void in_use(void) {
  struct pair pair = make_pair(IBV_QPT_RC);
  CHECK(ibv_destroy_cq(pair.sends) == EBUSY);
  CHECK(ibv_destroy_cq(pair.receives) == EBUSY);
  CHECK(ibv_destroy_comp_channel(pair.channel) == EBUSY);
  destroy_pair(&pair);
}

static void malformed_refused(void) {
  struct pair pair = make_pair(IBV_QPT_RC);
  connect_pair(&pair);
  CHECK(post_send(pair.a, 1, IBV_WR_SEND, 0, kMaxSge + 1, 8) == EINVAL);
  CHECK(post_send(pair.a, 1, IBV_WR_SEND, 0, -1, 8) == EINVAL);
  CHECK(post_receive(pair.a, 1, kMaxSge + 1) == EINVAL);
  CHECK(post_receive(pair.a, 1, -1) == EINVAL);
  CHECK(post_send(pair.a, 1, IBV_WR_SEND, IBV_SEND_INLINE, 1, inline_size + 1) == EINVAL);
  CHECK(post_send(pair.a, 1, IBV_WR_SEND, IBV_SEND_INLINE, 2, inline_size / 2 + 1) == EINVAL);
  CHECK(post_send(pair.a, 1, IBV_WR_SEND, IBV_SEND_INLINE, 2, 0xfffffff0) == EINVAL);
  CHECK(post_send(pair.a, 1, IBV_WR_RDMA_READ, IBV_SEND_INLINE, 1, 8) == EINVAL);
  CHECK(post_send(pair.a, 1, IBV_WR_TSO, 0, 1, 8) == EINVAL);
  CHECK(post_send(pair.a, 1, 77, 0, 1, 8) == EINVAL);
  destroy_pair(&pair);
}

static void inline_and_immediate(void) {
  struct pair pair = make_pair(IBV_QPT_RC);
  connect_pair(&pair);
  REQUIRE(!post_receive(pair.b, 7, 1));
  struct ibv_sge sge = {(uintptr_t)memory, 32, 0}; /* inline data needs no key */
  struct ibv_send_wr *bad, wr = {.wr_id = 9,
                                 .sg_list = &sge,
                                 .num_sge = 1,
                                 .opcode = IBV_WR_SEND_WITH_IMM,
                                 .send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED,
                                 .imm_data = htobe32(0x11223344)};
  memset(memory, 'x', 32);
  memset(memory + kReceiveAt, 0, 33);
  REQUIRE(!ibv_post_send(pair.a, &wr, &bad));
  memset(memory, 'y', 32); /* belongs to the program again after the post */
  struct ibv_wc wc = next_completion(pair.receives);
  CHECK(wc.wr_id == 7 && wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV);
  CHECK(wc.wc_flags == IBV_WC_WITH_IMM && wc.imm_data == htobe32(0x11223344));
  CHECK(wc.byte_len == 32 && wc.qp_num == pair.b->qp_num);
  CHECK(memory[kReceiveAt] == 'x' && memory[kReceiveAt + 31] == 'x' && !memory[kReceiveAt + 32]);
  wc = next_completion(pair.sends);
  CHECK(wc.wr_id == 9 && wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_SEND);
  CHECK(wc.qp_num == pair.a->qp_num);
  destroy_pair(&pair);
}

/* Posts sends until the queue is full; returns their number. */
static int fill(struct ibv_qp* qp, uint64_t wr_id) {
  int count = 0, error;
  while (!(error = post_send(qp, wr_id + (unsigned)count, IBV_WR_SEND, IBV_SEND_SIGNALED, 1, 8)))
    ++count;
  CHECK(error == ENOMEM);
  return count;
}

/* List of receives in which the one at `malformed` has too many entries. */
static void post_list(struct ibv_qp* qp, uint64_t wr_id, int malformed) {
  struct ibv_recv_wr list[6], *bad = NULL;
  struct ibv_sge sge = {(uintptr_t)memory + kReceiveAt, kReceiveSize, mr->lkey};
  for (int i = 0; i < 6; ++i)
    list[i] = (struct ibv_recv_wr){wr_id + (unsigned)i, i < 5 ? &list[i + 1] : NULL, &sge, 1};
  list[malformed].num_sge = kMaxSge + 1;
  CHECK(ibv_post_recv(qp, list, &bad) == EINVAL && bad == &list[malformed]);
}

static void full_queue(void) {
  struct pair pair = make_pair(IBV_QPT_RC);
  connect_pair(&pair);
  CHECK(fill(pair.a, 1000) == kDepth); /* b has no receives: all wait */
  post_list(pair.b, 2000, 3);
  for (unsigned i = 0; i < 3; ++i) expect_completion(pair.receives, 2000 + i);
  for (unsigned i = 0; i < 3; ++i) expect_completion(pair.sends, 1000 + i);
  CHECK(fill(pair.a, 1000 + kDepth) == 3); /* polled completions make room */
  for (unsigned i = 0; i < kDepth; ++i) CHECK(!post_receive(pair.b, 3000 + i, 1));
  for (unsigned i = 0; i < kDepth; ++i) expect_completion(pair.receives, 3000 + i);
  for (unsigned i = 3; i < kDepth + 3; ++i) expect_completion(pair.sends, 1000 + i);
  destroy_pair(&pair);
}

/* A completion queue with room for all sends is never overrun, although the program posts until the
 * send queue is full: unpolled completions occupy send slots. */
static void unpolled(void) {
  struct pair pair = make_pair(IBV_QPT_RC);
  connect_pair(&pair);
  for (unsigned half = 0; half < 2; ++half) { /* the last of each completes, and stays unpolled */
    CHECK(!ibv_req_notify_cq(pair.sends, 0));
    for (unsigned i = 0; i < kDepth / 2; ++i) {
      unsigned flags = i == kDepth / 2 - 1 ? IBV_SEND_SIGNALED : 0;
      CHECK(!post_send(pair.a, half, IBV_WR_RDMA_WRITE, flags, 1, 8));
    }
    take_event(pair.channel, pair.sends);
  }
  for (unsigned half = 0; half < 2; ++half) {
    CHECK(post_send(pair.a, 99, IBV_WR_RDMA_WRITE, 0, 1, 8) == ENOMEM);
    expect_completion(pair.sends, half);
    for (unsigned i = 0; i < kDepth / 2; ++i) /* earlier ones are free as well */
      CHECK(!post_send(pair.a, 99, IBV_WR_RDMA_WRITE, 0, 1, 8));
  }
  destroy_pair(&pair);
}

static void full_receive_queue(void) {
  struct pair pair = make_pair(IBV_QPT_RC);
  connect_pair(&pair);
  for (unsigned i = 0; i < kDepth; ++i) CHECK(!post_receive(pair.b, i, 1));
  CHECK(post_receive(pair.b, 99, 1) == ENOMEM);
  destroy_pair(&pair);
}

static void wrong_key(void) {
  struct pair pair = make_pair(IBV_QPT_RC);
  connect_pair(&pair);
  struct ibv_sge sge = {(uintptr_t)memory, 8, mr->lkey};
  struct ibv_send_wr *bad, wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1};
  wr.opcode = IBV_WR_RDMA_WRITE; /* errors complete unsignaled requests too */
  wr.wr.rdma.remote_addr = (uintptr_t)memory;
  wr.wr.rdma.rkey = mr->rkey ^ 0xff00;
  REQUIRE(!ibv_post_send(pair.a, &wr, &bad));
  CHECK(!post_send(pair.a, 2, IBV_WR_RDMA_WRITE, 0, 1, 8));
  CHECK(!post_receive(pair.a, 3, 1));
  struct ibv_wc wc = next_completion(pair.sends);
  CHECK(wc.wr_id == 1 && wc.status == IBV_WC_REM_ACCESS_ERR);
  wc = next_completion(pair.sends);
  CHECK(wc.wr_id == 2 && wc.status == IBV_WC_WR_FLUSH_ERR);
  wc = next_completion(pair.receives);
  CHECK(wc.wr_id == 3 && wc.status == IBV_WC_WR_FLUSH_ERR && wc.qp_num == pair.a->qp_num);
  struct ibv_qp_attr attr;
  struct ibv_qp_init_attr init;
  CHECK(!ibv_query_qp(pair.a, &attr, IBV_QP_STATE, &init) && attr.qp_state == IBV_QPS_ERR);
  destroy_pair(&pair);
}

/* A WRITE with immediate has a receive request, which tells of its wrong key in place of an event.
 */
static void wrong_key_with_receive(void) {
  struct pair pair = make_pair(IBV_QPT_RC);
  connect_pair(&pair);
  struct ibv_sge sge = {(uintptr_t)memory, 8, mr->lkey};
  struct ibv_send_wr *bad, wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1};
  wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  wr.wr.rdma.remote_addr = (uintptr_t)memory;
  wr.wr.rdma.rkey = mr->rkey ^ 0xff00;
  CHECK(!post_receive(pair.b, 3, 1));
  REQUIRE(!ibv_post_send(pair.a, &wr, &bad));
  struct ibv_wc wc = next_completion(pair.sends);
  CHECK(wc.wr_id == 1 && wc.status == IBV_WC_REM_ACCESS_ERR);
  wc = next_completion(pair.receives);
  CHECK(wc.wr_id == 3 && wc.status == IBV_WC_LOC_ACCESS_ERR && wc.qp_num == pair.b->qp_num);
  CHECK(!is_readable(context->async_fd, 0));
  destroy_pair(&pair);
}

/* Bytes of a small lone request are copied when it is posted: not before data of requests that it
 * waits for have arrived, and not from unreadable memory. */
static void few_bytes(void) {
  struct pair pair = make_pair(IBV_QPT_RC);
  connect_pair(&pair);
  char* page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(page != MAP_FAILED);
  memset(page, 'p', 4096);
  struct ibv_mr* region = ibv_reg_mr(pd, page, 4000, IBV_ACCESS_LOCAL_WRITE);
  REQUIRE(region);
  struct ibv_sge sge = {(uintptr_t)page, 8, region->lkey};
  struct ibv_send_wr *bad, wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1};
  wr.send_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE;
  wr.wr.rdma.rkey = mr->rkey;
  wr.wr.rdma.remote_addr = (uintptr_t)memory;
  for (int turn = 0; turn < 20; ++turn) {
    memset(memory, 'a' + turn, 8);
    wr.opcode = IBV_WR_RDMA_READ;
    wr.wr.rdma.remote_addr = (uintptr_t)memory;
    REQUIRE(!ibv_post_send(pair.a, &wr, &bad));
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.wr.rdma.remote_addr = (uintptr_t)memory + kReceiveAt;
    REQUIRE(!ibv_post_send(pair.a, &wr, &bad));
    expect_completion(pair.sends, 1);
    expect_completion(pair.sends, 1);
    CHECK(memory[kReceiveAt] == 'a' + turn && memory[kReceiveAt + 7] == 'a' + turn);
  }
  CHECK(!munmap(page, 4096));
  REQUIRE(!ibv_post_send(pair.a, &wr, &bad));
  CHECK(next_completion(pair.sends).status == IBV_WC_LOC_PROT_ERR);
  CHECK(!ibv_dereg_mr(region));
  destroy_pair(&pair);
}

const struct verbs_case kRequestCases[] = {
    {"a completion queue of no size, too large, or of another vector is refused", cqs_refused},
    {"a queue pair of another type, without a queue, or with too many entries is refused",
     qps_refused},
    {"a domain in use says EBUSY", domain_in_use},
    {"queues and channels in use are not destroyed", in_use},
    {"malformed requests are refused where they are posted", malformed_refused},
    {"inline data is copied, and an immediate keeps the order of its bytes", inline_and_immediate},
    {"the few bytes of a request are those that are there when its turn comes", few_bytes},
    {"a full send queue refuses; of a list, what is before the malformed one is posted",
     full_queue},
    {"a send whose completion has not been polled keeps its slot", unpolled},
    {"a full receive queue refuses", full_receive_queue},
    {"a wrong remote key ends with its error, and what comes after it is flushed", wrong_key},
    {"a wrong remote key of a WRITE with immediate ends its receive", wrong_key_with_receive},
    {0},
};
