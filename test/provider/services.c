/* Transport services, and features of single ones. */
#include <errno.h>
#include <string.h>

#include "test/provider/verbs_test.h"

static void operations_refused(void) {
  struct pair uc = make_pair(IBV_QPT_UC), ud = make_pair(IBV_QPT_UD);
  connect_pair(&uc);
  connect_pair(&ud);
  CHECK(post_send(uc.a, 1, IBV_WR_RDMA_READ, 0, 1, 8) == EINVAL);
  CHECK(post_send(uc.a, 1, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 1, 8) == EINVAL);
  CHECK(post_send(ud.a, 1, IBV_WR_RDMA_WRITE, 0, 1, 8) == EINVAL);
  struct ibv_sge sge = {(uintptr_t)memory, 8, mr->lkey};
  struct ibv_send_wr *bad, wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
  CHECK(ibv_post_send(ud.a, &wr, &bad) == EINVAL && bad == &wr); /* no address handle */
  destroy_pair(&uc);
  destroy_pair(&ud);
}

static void handles_refused(void) {
  struct ibv_ah_attr attr = own_address();
  attr.is_global = 0;
  errno = 0;
  CHECK(!ibv_create_ah(pd, &attr) && errno == EINVAL);
  attr = own_address();
  attr.port_num = 3;
  errno = 0;
  CHECK(!ibv_create_ah(pd, &attr) && errno == EINVAL);
  attr = own_address();
  attr.grh.sgid_index = 200;
  errno = 0;
  CHECK(!ibv_create_ah(pd, &attr) && errno == EINVAL);
}

/* A domain in use stays (IBTA 11.2.2.2); a destroyed handle is none. */
static void handles_counted(void) {
  struct ibv_ah_attr address = own_address();
  struct ibv_pd* other = ibv_alloc_pd(context);
  REQUIRE(other);
  struct ibv_ah* ah = ibv_create_ah(other, &address);
  REQUIRE(ah);
  errno = 0;
  CHECK(ibv_dealloc_pd(other) == EBUSY && errno == EBUSY);
  uint32_t handle = ah->handle;
  ah->handle = ~handle;
  errno = 0;
  CHECK(ibv_destroy_ah(ah) == ENOENT && errno == ENOENT);
  ah->handle = handle;
  CHECK(!ibv_destroy_ah(ah));
  CHECK(!ibv_dealloc_pd(other));
}

static void datagram(void) {
  struct pair pair = make_pair(IBV_QPT_UD);
  connect_pair(&pair);
  struct ibv_ah_attr address = own_address();
  struct ibv_ah* ah = ibv_create_ah(pd, &address);
  REQUIRE(ah);
  struct ibv_sge sge = {(uintptr_t)memory, 6, mr->lkey};
  struct ibv_send_wr *bad, wr = {.wr_id = 2,
                                 .sg_list = &sge,
                                 .num_sge = 1,
                                 .opcode = IBV_WR_SEND,
                                 .send_flags = IBV_SEND_SIGNALED};
  wr.wr.ud.ah = ah;
  wr.wr.ud.remote_qpn = pair.b->qp_num;
  strcpy(memory, "hello");
  REQUIRE(!post_receive(pair.b, 1, 1));
  REQUIRE(!ibv_post_send(pair.a, &wr, &bad));
  CHECK(!ibv_destroy_ah(ah)); /* requests carry their address */
  struct ibv_wc wc = next_completion(pair.receives);
  CHECK(wc.wr_id == 1 && wc.status == IBV_WC_SUCCESS && wc.src_qp == pair.a->qp_num);
  CHECK((wc.wc_flags & IBV_WC_GRH) && wc.byte_len == sizeof(struct ibv_grh) + 6);
  CHECK(wc.sl == 2); /* IPv4, as HCAs say */
  CHECK(!strcmp(memory + kReceiveAt + sizeof(struct ibv_grh), "hello"));
  expect_completion(pair.sends, 2);
  destroy_pair(&pair);
}

/* A list of which the second request is refused: the first one has its own bytes. */
static void list_refused(void) {
  struct pair pair = make_pair(IBV_QPT_UD);
  connect_pair(&pair);
  struct ibv_ah_attr address = own_address();
  struct ibv_ah* ah = ibv_create_ah(pd, &address);
  REQUIRE(ah);
  strcpy(memory, "first");
  strcpy(memory + 64, "other");
  struct ibv_sge sges[2] = {{(uintptr_t)memory, 6, mr->lkey},
                            {(uintptr_t)memory + 64, 6, mr->lkey}};
  struct ibv_send_wr *bad, wr[2] = {{.wr_id = 2, .next = &wr[1], .sg_list = &sges[0], .num_sge = 1},
                                    {.wr_id = 3, .sg_list = &sges[1], .num_sge = 1}};
  wr[0].send_flags = IBV_SEND_SIGNALED;
  wr[0].opcode = wr[1].opcode = IBV_WR_SEND;
  wr[0].wr.ud.ah = ah;
  wr[0].wr.ud.remote_qpn = pair.b->qp_num;
  REQUIRE(!post_receive(pair.b, 1, 1));
  CHECK(ibv_post_send(pair.a, wr, &bad) == EINVAL && bad == &wr[1]); /* no address handle */
  expect_completion(pair.receives, 1);
  CHECK(!strcmp(memory + kReceiveAt + sizeof(struct ibv_grh), "first"));
  expect_completion(pair.sends, 2);
  CHECK(!ibv_destroy_ah(ah));
  destroy_pair(&pair);
}

static struct ibv_qp* make_signaling_qp(struct ibv_cq* cq) {
  struct ibv_qp_init_attr attr = {
      .send_cq = cq, .recv_cq = cq, .cap = {4, 4, 1, 1, 0}, .qp_type = IBV_QPT_RC, .sq_sig_all = 1};
  struct ibv_qp* qp = ibv_create_qp(pd, &attr);
  REQUIRE(qp);
  connect_qp(qp, qp->qp_num);
  return qp;
}

static void all_signaled(void) {
  struct ibv_cq* cq = ibv_create_cq(context, 16, NULL, NULL, 0);
  struct ibv_qp* qp = make_signaling_qp(cq);
  CHECK(!post_send(qp, 5, IBV_WR_RDMA_WRITE, 0, 1, 8));
  expect_completion(cq, 5);
  CHECK(!ibv_destroy_qp(qp));
  CHECK(!ibv_destroy_cq(cq));
}

static void atomics(void) {
  struct ibv_cq* cq = ibv_create_cq(context, 16, NULL, NULL, 0);
  struct ibv_qp* qp = make_signaling_qp(cq);
  uint64_t* target = (uint64_t*)(void*)(memory + 512);
  uint64_t* original = (uint64_t*)(void*)(memory + 1024);
  struct ibv_sge sge = {(uintptr_t)original, 8, mr->lkey};
  struct ibv_send_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};
  wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
  wr.wr.atomic.remote_addr = (uintptr_t)target;
  wr.wr.atomic.rkey = mr->rkey;
  wr.wr.atomic.compare_add = 2;
  *target = 40;
  REQUIRE(!ibv_post_send(qp, &wr, &bad));
  CHECK(next_completion(cq).opcode == IBV_WC_FETCH_ADD);
  CHECK(*target == 42 && *original == 40);
  wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
  wr.wr.atomic.compare_add = 42;
  wr.wr.atomic.swap = 7;
  REQUIRE(!ibv_post_send(qp, &wr, &bad));
  CHECK(next_completion(cq).opcode == IBV_WC_COMP_SWAP);
  CHECK(*target == 7 && *original == 42);
  wr.opcode = IBV_WR_ATOMIC_WRITE;
  wr.wr.rdma.remote_addr = (uintptr_t)target;
  wr.wr.rdma.rkey = mr->rkey;
  REQUIRE(!ibv_post_send(qp, &wr, &bad));
  CHECK(next_completion(cq).opcode == IBV_WC_ATOMIC_WRITE);
  CHECK(*target == 42 && *original == 42);
  CHECK(!ibv_destroy_qp(qp));
  CHECK(!ibv_destroy_cq(cq));
}

static void other_addresses(void) {
  struct ibv_cq* cq = ibv_create_cq(context, 16, NULL, NULL, 0);
  struct ibv_qp* qp = make_signaling_qp(cq);
  struct ibv_mr* region = ibv_reg_mr_iova(pd, memory + 65536, 4096, 0x1000,
                                          IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  REQUIRE(region);
  strcpy(memory, "hello");
  struct ibv_sge sge = {(uintptr_t)memory, 6, mr->lkey};
  struct ibv_send_wr *bad, wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};
  wr.wr.rdma.remote_addr = 0x1010;
  wr.wr.rdma.rkey = region->rkey;
  REQUIRE(!ibv_post_send(qp, &wr, &bad));
  CHECK(next_completion(cq).status == IBV_WC_SUCCESS);
  CHECK(!strcmp(memory + 65536 + 16, "hello"));
  CHECK(!ibv_dereg_mr(region));
  /* The same addresses, near too: those of other bytes of this program. */
  region = ibv_reg_mr_iova(pd, memory + 65536, 4096, (uintptr_t)memory, IBV_ACCESS_LOCAL_WRITE);
  REQUIRE(region);
  strcpy(memory, "wrong");
  sge.lkey = region->lkey;
  sge.addr += 16;
  wr.wr.rdma.remote_addr = (uintptr_t)memory + 1024;
  wr.wr.rdma.rkey = mr->rkey;
  REQUIRE(!ibv_post_send(qp, &wr, &bad));
  CHECK(next_completion(cq).status == IBV_WC_SUCCESS);
  CHECK(!strcmp(memory + 1024, "hello"));
  CHECK(!ibv_dereg_mr(region));
  CHECK(!ibv_destroy_qp(qp));
  CHECK(!ibv_destroy_cq(cq));
}

/* Every size from nothing to several packets, there and back by WRITE and READ. */
static void sizes(void) {
  struct pair pair = make_pair(IBV_QPT_RC);
  connect_pair(&pair);
  enum { kFar = 256 << 10, kBack = 512 << 10, kMaxSize = 200000 };
  for (int i = 0; i < kMaxSize; ++i) memory[i] = (char)(i * 7 + i / 251);
  for (uint32_t size = 0; size <= kMaxSize; size = size < 5 ? size + 1 : size * 3 + 1) {
    struct ibv_sge sge = {(uintptr_t)memory, size, mr->lkey};
    struct ibv_send_wr *bad, wr = {.wr_id = size, .sg_list = &sge, .num_sge = 1};
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.wr.rdma.remote_addr = (uintptr_t)memory + kFar;
    wr.wr.rdma.rkey = mr->rkey;
    memset(memory + kFar, 0, kMaxSize + 1);
    memset(memory + kBack, 0, kMaxSize + 1);
    REQUIRE(!ibv_post_send(pair.a, &wr, &bad)); /* unsignaled: done when the READ completes */
    wr.opcode = IBV_WR_RDMA_READ;
    wr.send_flags = IBV_SEND_SIGNALED;
    sge.addr = (uintptr_t)memory + kBack;
    REQUIRE(!ibv_post_send(pair.a, &wr, &bad));
    expect_completion(pair.sends, size);
    CHECK(!memcmp(memory, memory + kFar, size) && !memory[kFar + size]);
    CHECK(!memcmp(memory, memory + kBack, size) && !memory[kBack + size]);
  }
  destroy_pair(&pair);
}

const struct verbs_case kServiceCases[] = {
    {"operations that a transport service has not got are refused", operations_refused},
    {"an address without a GID, or of a port or a GID that is not there, is refused",
     handles_refused},
    {"a domain with an address handle stays, and no other handle is destroyed", handles_counted},
    {"a datagram arrives behind its GRH", datagram},
    {"of a list whose second datagram is refused, the first has its own bytes", list_refused},
    {"sq_sig_all signals what does not ask for it", all_signaled},
    {"atomics change the number and bring the one of before", atomics},
    {"a region is named by the addresses it was registered for", other_addresses},
    {"bytes written and read back are the same, whatever their number", sizes},
    {0},
};
