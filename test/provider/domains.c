/* Thread and parent domains, device memory, paging on demand, and time stamps of completions. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "test/provider/verbs_test.h"

static void* own_allocator(struct ibv_pd* of, void* user, size_t size, size_t alignment,
                           uint64_t type) {
  (void)of, (void)user, (void)size, (void)alignment, (void)type;
  return NULL;
}

static void parents(void) {
  struct ibv_pd* base = ibv_alloc_pd(context);
  struct ibv_td* td = ibv_alloc_td(context, &(struct ibv_td_init_attr){0});
  REQUIRE(base && td);
  struct ibv_parent_domain_init_attr attr = {.pd = base, .td = td};
  struct ibv_pd* parent = ibv_alloc_parent_domain(context, &attr);
  REQUIRE(parent);
  CHECK(ibv_dealloc_pd(base) == EBUSY && ibv_dealloc_td(td) == EBUSY);
  struct ibv_mr* region = ibv_reg_mr(parent, memory, 64, 0);
  CHECK(region && !ibv_dereg_mr(region));
  CHECK(!ibv_dealloc_pd(parent));
  attr.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
  attr.alloc = own_allocator;
  errno = 0;
  CHECK(!ibv_alloc_parent_domain(context, &attr) && errno == EOPNOTSUPP);
  attr = (struct ibv_parent_domain_init_attr){.td = td};
  errno = 0;
  CHECK(!ibv_alloc_parent_domain(context, &attr) && errno == EINVAL);
  CHECK(!ibv_dealloc_td(td) && !ibv_dealloc_pd(base));
}

/* Objects of a parent domain keep it, and with it its thread domain, as mlx5 has it. */
static void parents_in_use(void) {
  struct ibv_td* td = ibv_alloc_td(context, &(struct ibv_td_init_attr){0});
  struct ibv_pd* parent =
      ibv_alloc_parent_domain(context, &(struct ibv_parent_domain_init_attr){.pd = pd, .td = td});
  REQUIRE(td && parent);
  struct ibv_cq* cq = ibv_create_cq(context, 4, NULL, NULL, 0);
  struct ibv_qp_init_attr attr = {
      .send_cq = cq, .recv_cq = cq, .cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_RC};
  struct ibv_qp* qp = ibv_create_qp(parent, &attr);
  REQUIRE(qp);
  CHECK(ibv_dealloc_pd(parent) == EBUSY && ibv_dealloc_td(td) == EBUSY && !ibv_destroy_qp(qp));
  struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1}};
  struct ibv_srq* srq = ibv_create_srq(parent, &init);
  CHECK(srq && ibv_dealloc_pd(parent) == EBUSY && !ibv_destroy_srq(srq));
  struct ibv_mw* window = ibv_alloc_mw(parent, IBV_MW_TYPE_1);
  CHECK(window && ibv_dealloc_pd(parent) == EBUSY && !ibv_dealloc_mw(window));
  struct ibv_mr* region = ibv_reg_mr(parent, memory, 64, 0);
  REQUIRE(region);
  CHECK(ibv_dealloc_pd(parent) == EBUSY);
  struct ibv_pd* other =
      ibv_alloc_parent_domain(context, &(struct ibv_parent_domain_init_attr){.pd = pd});
  CHECK(other && !ibv_rereg_mr(region, IBV_REREG_MR_CHANGE_PD, other, NULL, 0, 0));
  CHECK(ibv_dealloc_pd(other) == EBUSY);
  CHECK(!ibv_dealloc_pd(parent) && !ibv_dealloc_td(td));
  CHECK(!ibv_dereg_mr(region) && !ibv_dealloc_pd(other) && !ibv_destroy_cq(cq));
}

static void device_memory(void) {
  struct ibv_device_attr_ex device;
  REQUIRE(!ibv_query_device_ex(context, NULL, &device));
  CHECK(device.max_dm_size > 0);
  errno = 0;
  struct ibv_alloc_dm_attr attr = {.length = device.max_dm_size + 1};
  CHECK(!ibv_alloc_dm(context, &attr) && errno == EINVAL);
  attr.length = 6000;
  struct ibv_dm* dm = ibv_alloc_dm(context, &attr);
  REQUIRE(dm);
  errno = 0;
  attr.length = device.max_dm_size;
  CHECK(!ibv_alloc_dm(context, &attr) && errno == ENOMEM);
  const unsigned rights = IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                          IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  errno = 0;
  CHECK(!ibv_reg_dm_mr(pd, dm, 5000, 1001, rights) && errno == EINVAL);
  errno = 0;
  CHECK(!ibv_reg_dm_mr(pd, dm, 0, 64, rights & ~IBV_ACCESS_ZERO_BASED) && errno == EINVAL);
  struct ibv_mr* region = ibv_reg_dm_mr(pd, dm, 4096, 1024, rights);
  REQUIRE(region);
  CHECK(ibv_free_dm(dm) == EBUSY);
  CHECK(ibv_memcpy_to_dm(dm, 5996, memory, 8) == EFAULT);
  CHECK(ibv_memcpy_to_dm(dm, 2, memory, 4) == EINVAL);
  CHECK(ibv_memcpy_from_dm(memory, dm, 0, 6) == EINVAL);

  struct pair pair = make_pair(IBV_QPT_RC);
  connect_pair(&pair);
  strcpy(memory, "hello");
  struct ibv_sge sge = {(uintptr_t)memory, 6, mr->lkey};
  struct ibv_send_wr *bad, wr = {.wr_id = 1,
                                 .sg_list = &sge,
                                 .num_sge = 1,
                                 .opcode = IBV_WR_RDMA_WRITE,
                                 .send_flags = IBV_SEND_SIGNALED};
  wr.wr.rdma.remote_addr = 8;
  wr.wr.rdma.rkey = region->rkey;
  REQUIRE(!ibv_post_send(pair.a, &wr, &bad));
  expect_completion(pair.sends, 1);
  char back[8] = "";
  CHECK(!ibv_memcpy_from_dm(back, dm, 4096 + 8, 8) && !strcmp(back, "hello"));
  /* Sent from device memory, to the program's. */
  CHECK(!ibv_memcpy_to_dm(dm, 4096, "other\0\0", 8));
  sge = (struct ibv_sge){0, 6, region->lkey};
  wr.wr.rdma.remote_addr = (uintptr_t)memory;
  wr.wr.rdma.rkey = mr->rkey;
  REQUIRE(!ibv_post_send(pair.a, &wr, &bad));
  expect_completion(pair.sends, 1);
  CHECK(!strcmp(memory, "other"));
  destroy_pair(&pair);
  CHECK(!ibv_dereg_mr(region) && !ibv_free_dm(dm));
}

static uint64_t now(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void stamps(void) {
  struct ibv_device_attr_ex device;
  REQUIRE(!ibv_query_device_ex(context, NULL, &device));
  CHECK(device.hca_core_clock == 1000000 && device.completion_timestamp_mask == UINT64_MAX);
  struct ibv_values_ex values = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
  uint64_t before = now(CLOCK_MONOTONIC), began = now(CLOCK_REALTIME);
  REQUIRE(!ibv_query_rt_values_ex(context, &values));
  CHECK((uint64_t)values.raw_clock.tv_sec * 1000000000 + (uint64_t)values.raw_clock.tv_nsec >=
        before);
  values.comp_mask = 2;
  CHECK(ibv_query_rt_values_ex(context, &values) == EINVAL);
  struct ibv_cq_init_attr_ex attr = {.cqe = 16,
                                     .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
                                                 IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK};
  struct ibv_cq_ex* cq = ibv_create_cq_ex(context, &attr);
  REQUIRE(cq);
  struct ibv_qp* qp = make_qp(ibv_cq_ex_to_cq(cq), ibv_cq_ex_to_cq(cq), IBV_QPT_RC, NULL);
  connect_qp(qp, qp->qp_num);
  REQUIRE(!post_send(qp, 5, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 1, 8));
  struct ibv_poll_cq_attr poll = {0};
  while (ibv_start_poll(cq, &poll) == ENOENT) {
  }
  uint64_t stamp = ibv_wc_read_completion_ts(cq), wall = ibv_wc_read_completion_wallclock_ns(cq);
  ibv_end_poll(cq);
  CHECK(stamp >= before && stamp <= now(CLOCK_MONOTONIC));
  /* Within a second: somebody may set the clock. */
  CHECK(wall + 1000000000 > began && wall < now(CLOCK_REALTIME) + 1000000000);
  CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
}

/* Status of a WRITE of 8 octets from `memory` to `to`; the queue pairs are of no use after a
 * failure. */
static enum ibv_wc_status write_to(const struct pair* pair, const void* to, uint32_t rkey) {
  struct ibv_sge sge = {(uintptr_t)memory, 8, mr->lkey};
  struct ibv_send_wr *bad, wr = {.sg_list = &sge,
                                 .num_sge = 1,
                                 .opcode = IBV_WR_RDMA_WRITE,
                                 .send_flags = IBV_SEND_SIGNALED};
  wr.wr.rdma.remote_addr = (uintptr_t)to;
  wr.wr.rdma.rkey = rkey;
  REQUIRE(!ibv_post_send(pair->a, &wr, &bad));
  return next_completion(pair->sends).status;
}

static void on_demand(void) {
  struct ibv_device_attr_ex device;
  REQUIRE(!ibv_query_device_ex(context, NULL, &device));
  CHECK(device.odp_caps.general_caps == (IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT));
  const int rights = IBV_ACCESS_ON_DEMAND | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  const size_t size = 1 << 16;
  char* pages = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(pages != MAP_FAILED);
  CHECK(!ibv_reg_mr(pd, pages, size,
                    rights & ~IBV_ACCESS_ON_DEMAND)); /* pinned pages must be there */
  struct ibv_mr* region = ibv_reg_mr(pd, pages, size, rights);
  REQUIRE(region);
  struct ibv_sge part = {(uintptr_t)pages, (uint32_t)size, region->lkey};
  CHECK(ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, &part, 1) != 0);
  REQUIRE(!mprotect(pages, size, PROT_READ | PROT_WRITE));
  CHECK(!ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, &part, 1));
  part.addr -= 4096;
  CHECK(ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &part, 1) == EINVAL);
  struct pair pair = make_pair(IBV_QPT_RC);
  connect_pair(&pair);
  strcpy(memory, "hello");
  CHECK(write_to(&pair, pages, region->rkey) == IBV_WC_SUCCESS && !strcmp(pages, "hello"));
  /* Other pages at the same addresses are the region's from now on. */
  REQUIRE(mmap(pages, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
               0) == pages);
  CHECK(write_to(&pair, pages + 4096, region->rkey) == IBV_WC_SUCCESS);
  CHECK(!strcmp(pages + 4096, "hello") && !pages[0]);
  REQUIRE(!mprotect(pages, size, PROT_READ));
  CHECK(write_to(&pair, pages, region->rkey) == IBV_WC_REM_ACCESS_ERR && !pages[0]);
  destroy_pair(&pair);
  REQUIRE(!mprotect(pages, size, PROT_READ | PROT_WRITE));
  CHECK(!ibv_dereg_mr(region));
  /* All memory of the program. */
  struct ibv_mr* all = ibv_reg_mr(pd, NULL, SIZE_MAX, rights);
  REQUIRE(all);
  pair = make_pair(IBV_QPT_RC);
  connect_pair(&pair);
  CHECK(write_to(&pair, pages, all->rkey) == IBV_WC_SUCCESS && !strcmp(pages, "hello"));
  REQUIRE(!munmap(pages, size));
  CHECK(write_to(&pair, pages, all->rkey) == IBV_WC_REM_ACCESS_ERR);
  destroy_pair(&pair);
  CHECK(!ibv_dereg_mr(all));
}

const struct verbs_case kDomainCases[] = {
    {"a parent domain stands for its protection domain", parents},
    {"a parent domain stays while objects of it exist", parents_in_use},
    {"device memory is read and written by copies and over the wire", device_memory},
    {"a region that is paged on demand has the pages of the moment", on_demand},
    {"completions have time stamps where the program asks", stamps},
    {0},
};
