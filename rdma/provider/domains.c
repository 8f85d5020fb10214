/* Protection domains, and thread and parent domains, which exist in the program alone: they change
 * how a program may use its objects, and the engine serves all alike. ibv_alloc_td(3),
 * ibv_alloc_parent_domain(3). */
#include <errno.h>
#include <stdlib.h>

#include "rdma/provider/rocefs.h"

struct rocefs_td {
  struct ibv_td ibv;
  uint32_t users; /* parent domains */
};
static struct rocefs_td* td_of(struct ibv_td* td) {
  return ROCEFS_CONTAINER(td, struct rocefs_td, ibv);
}

/* A parent domain has the handle of the domain that it stands for. */
struct rocefs_pd {
  struct ibv_pd ibv;
  uint32_t users;         /* address handles, parent domains that stand for it; its own objects */
  struct rocefs_pd* base; /* NULL: no parent domain */
  struct rocefs_td* td;
};
static struct rocefs_pd* pd_of(struct ibv_pd* pd) {
  return ROCEFS_CONTAINER(pd, struct rocefs_pd, ibv);
}

static void count(uint32_t* users, int change) {
  __atomic_fetch_add(users, (uint32_t)change, __ATOMIC_RELAXED);
}

void rocefs_count_handle(struct ibv_pd* pd, int change) {
  count(&pd_of(pd)->users, change);
}

void rocefs_count_object(struct ibv_pd* pd, int change) {
  if (pd_of(pd)->base) count(&pd_of(pd)->users, change);
}

struct ibv_pd* rocefs_alloc_pd(struct ibv_context* context) {
  struct rocefs_request request = {.op = ROCEFS_OP_ALLOC_PD};
  struct rocefs_answer answer;
  struct rocefs_pd* pd = calloc(1, sizeof *pd);
  if (!pd) return NULL;
  int error = rocefs_request(rocefs_context_of(context), &request, &answer);
  if (error) {
    free(pd);
    errno = error;
    return NULL;
  }
  pd->ibv.handle = answer.u.handle;
  return &pd->ibv;
}

int rocefs_dealloc_pd(struct ibv_pd* ibv) {
  struct rocefs_context* context = rocefs_context_of(ibv->context);
  struct rocefs_request request = {.op = ROCEFS_OP_DEALLOC_PD, .u.handle = ibv->handle};
  struct rocefs_pd* pd = pd_of(ibv);
  int error = 0;
  if (__atomic_load_n(&pd->users, __ATOMIC_RELAXED)) {
    error = rocefs_destroy_error(context, EBUSY);
  } else if (pd->base) {
    count(&pd->base->users, -1);
    if (pd->td) count(&pd->td->users, -1);
  } else {
    error = rocefs_destroy_error(context, rocefs_request(context, &request, NULL));
  }
  if (!error) free(pd);
  return error;
}

struct ibv_td* rocefs_alloc_td(struct ibv_context* context, struct ibv_td_init_attr* attr) {
  if (attr->comp_mask) {
    errno = EINVAL;
    return NULL;
  }
  struct rocefs_td* td = calloc(1, sizeof *td);
  if (!td) return NULL;
  td->ibv.context = context;
  return &td->ibv;
}

int rocefs_dealloc_td(struct ibv_td* td) {
  if (__atomic_load_n(&td_of(td)->users, __ATOMIC_RELAXED)) return errno = EBUSY;
  free(td_of(td));
  return 0;
}

/* The memory of queues is the engine's, in sealed files: a program's allocator cannot make it. */
struct ibv_pd* rocefs_alloc_parent_domain(struct ibv_context* context,
                                          struct ibv_parent_domain_init_attr* attr) {
  int error = 0;
  if (attr->comp_mask & ~(uint32_t)IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)
    error = EOPNOTSUPP;
  else if (!attr->pd || attr->pd->context != context)
    error = EINVAL;
  struct rocefs_pd* pd = error ? NULL : calloc(1, sizeof *pd);
  if (!pd) {
    errno = error ? error : ENOMEM;
    return NULL;
  }
  struct rocefs_pd* base = pd_of(attr->pd);
  pd->base = base->base ? base->base : base;
  pd->td = attr->td ? td_of(attr->td) : NULL;
  count(&pd->base->users, 1);
  if (pd->td) count(&pd->td->users, 1);
  pd->ibv.context = context;
  pd->ibv.handle = attr->pd->handle;
  return &pd->ibv;
}
