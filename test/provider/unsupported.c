/* Unsupported verbs: each gives EOPNOTSUPP, and none reaches a kernel. Limits that
 * ibv_query_device(3) gives. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "test/provider/verbs_test.h"

/* True if a call that returns a pointer and errno, or an errno, gives EOPNOTSUPP. */
#define ABSENT(call) CHECK((errno = 0, !(call)) && errno == EOPNOTSUPP)
#define ABSENT_ERRNO(call) CHECK((call) == EOPNOTSUPP)

static void absent(void) {
  struct pair pair = make_pair(IBV_QPT_RC);
  struct ibv_srq_init_attr init = {.attr = {.max_wr = 1, .max_sge = 1}};
  struct ibv_srq* srq = ibv_create_srq(pd, &init);
  REQUIRE(srq);
  ABSENT(ibv_create_flow(pair.a, &(struct ibv_flow_attr){.size = sizeof(struct ibv_flow_attr)}));
  ABSENT(ibv_create_flow_action_esp(context, &(struct ibv_flow_action_esp_attr){0}));
  ABSENT(ibv_create_wq(context, &(struct ibv_wq_init_attr){.pd = pd, .cq = pair.sends}));
  ABSENT(ibv_create_rwq_ind_table(context, &(struct ibv_rwq_ind_table_init_attr){0}));
  ABSENT(ibv_create_counters(context, &(struct ibv_counters_init_attr){0}));
  ABSENT(ibv_alloc_null_mr(pd));
  ABSENT(ibv_reg_dmabuf_mr(pd, 0, 4096, 0, 0, 0));
  ABSENT(ibv_import_device(0));
  ABSENT(ibv_import_pd(context, 1));
  ABSENT(ibv_import_mr(pd, 1));
  ABSENT(ibv_import_dm(context, 1));
  ABSENT_ERRNO(ibv_modify_cq(pair.sends, &(struct ibv_modify_cq_attr){.attr_mask = 1}));
  ABSENT_ERRNO(ibv_modify_qp_rate_limit(pair.a, &(struct ibv_qp_rate_limit_attr){0}));
  ABSENT_ERRNO(ibv_query_ece(pair.a, &(struct ibv_ece){0}));
  ABSENT_ERRNO(ibv_set_ece(pair.a, &(struct ibv_ece){0}));
  ABSENT_ERRNO(ibv_post_srq_ops(srq, &(struct ibv_ops_wr){0}, &(struct ibv_ops_wr*){0}));
  ABSENT_ERRNO(ibv_modify_srq(srq, &(struct ibv_srq_attr){.max_wr = 2}, IBV_SRQ_MAX_WR));
  for (int type = IBV_QPT_RAW_PACKET; type <= IBV_QPT_DRIVER; ++type) {
    if (type == IBV_QPT_XRC_SEND) continue; /* a receiver is made in another way */
    ABSENT(ibv_create_qp(pd, &(struct ibv_qp_init_attr){.send_cq = pair.sends,
                                                        .recv_cq = pair.receives,
                                                        .cap = {1, 1, 1, 1, 0},
                                                        .qp_type = (enum ibv_qp_type)type}));
  }
  CHECK(!ibv_destroy_srq(srq));
  destroy_pair(&pair);
}

/* Creates as many objects as the limit allows, of which `there` exist already; one more fails with
 * ENOMEM. Destroyed ones can be created again. */
static void fill(void* (*make)(void), int (*give)(void*), int limit, int there) {
  void** all = calloc((size_t)limit + 1, sizeof *all);
  int made = 0;
  while (made <= limit && (all[made] = make())) ++made;
  CHECK(made == limit - there && errno == ENOMEM);
  bool given = true;
  while (made > 0) given = !give(all[--made]) && given;
  CHECK(given && (all[0] = make()) && !give(all[0]));
  free(all);
}

static struct ibv_cq* shared_cq;
static struct ibv_ah_attr address;
static void* one_pd(void) {
  return ibv_alloc_pd(context);
}
static int no_pd(void* one) {
  return ibv_dealloc_pd(one);
}
static void* one_cq(void) {
  return ibv_create_cq(context, 1, NULL, NULL, 0);
}
static int no_cq(void* one) {
  return ibv_destroy_cq(one);
}
static void* one_qp(void) {
  struct ibv_qp_init_attr attr = {
      .send_cq = shared_cq, .recv_cq = shared_cq, .cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_RC};
  return ibv_create_qp(pd, &attr);
}
static int no_qp(void* one) {
  return ibv_destroy_qp(one);
}
static void* one_srq(void) {
  struct ibv_srq_init_attr attr = {.attr = {.max_wr = 1, .max_sge = 1}};
  return ibv_create_srq(pd, &attr);
}
static int no_srq(void* one) {
  return ibv_destroy_srq(one);
}
static void* one_mr(void) {
  return ibv_reg_mr(pd, memory, 64, 0);
}
static int no_mr(void* one) {
  return ibv_dereg_mr(one);
}
static void* one_mw(void) {
  return ibv_alloc_mw(pd, IBV_MW_TYPE_2);
}
static int no_mw(void* one) {
  return ibv_dealloc_mw(one);
}
static void* one_ah(void) {
  return ibv_create_ah(pd, &address);
}
static int no_ah(void* one) {
  return ibv_destroy_ah(one);
}

/* ROCEFS_LIMITS=all: all limits, which takes long. */
static void limits(void) {
  struct ibv_device_attr limits;
  REQUIRE(!ibv_query_device(context, &limits));
  fill(one_cq, no_cq, limits.max_cq, 0);
  shared_cq = ibv_create_cq(context, 1, NULL, NULL, 0);
  fill(one_qp, no_qp, limits.max_qp, 0);
  CHECK(!ibv_destroy_cq(shared_cq));
  if (!getenv("ROCEFS_LIMITS")) return;
  address = own_address();
  fill(one_pd, no_pd, limits.max_pd, 1);
  fill(one_srq, no_srq, limits.max_srq, 0);
  fill(one_mr, no_mr, limits.max_mr, 1);
  fill(one_mw, no_mw, limits.max_mw, 0);
  fill(one_ah, no_ah, limits.max_ah, 0);
}

const struct verbs_case kAbsentCases[] = {
    {"verbs that there are not say EOPNOTSUPP", absent},
    {"as many can be had as the device says, and no more", limits},
    {0},
};
