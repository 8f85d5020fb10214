/* Protection domains and memory regions. */
#include <errno.h>
#include <stdlib.h>

#include "rdma/provider/rocefs.h"
#include "rdma/provider/shared_pages.h"

struct rocefs_mr {
  struct verbs_mr verbs;
  struct rocefs_shared_pages pages;
  const void* address;
  size_t length;
};
static struct rocefs_mr* rocefs_mr_of(struct verbs_mr* mr) {
  return ROCEFS_CONTAINER(mr, struct rocefs_mr, verbs);
}

struct ibv_pd* rocefs_alloc_pd(struct ibv_context* context) {
  struct rocefs_request request = {.op = ROCEFS_OP_ALLOC_PD};
  struct rocefs_answer answer;
  struct ibv_pd* pd = calloc(1, sizeof *pd);
  if (!pd) return NULL;
  int error = rocefs_request(rocefs_context_of(context), &request, &answer);
  if (error) {
    free(pd);
    errno = error;
    return NULL;
  }
  pd->handle = answer.u.handle;
  return pd;
}

int rocefs_dealloc_pd(struct ibv_pd* pd) {
  struct rocefs_context* context = rocefs_context_of(pd->context);
  struct rocefs_request request = {.op = ROCEFS_OP_DEALLOC_PD, .u.handle = pd->handle};
  int error = rocefs_destroy_error(context, rocefs_request(context, &request, NULL));
  if (!error) free(pd);
  return error;
}

/* Registers a region of shared pages. On an errno nothing has changed. */
static int share(struct rocefs_context* context, struct rocefs_mr* mr,
                 struct rocefs_request* request, struct rocefs_answer* answer) {
  void* address = (void*)(uintptr_t)request->u.reg_mr.address;
  size_t length = request->u.reg_mr.length;
  if (!rocefs_can_share(address, length)) return EINVAL;
  request->op = ROCEFS_OP_SHARE_MR;
  int fd;
  int error = rocefs_request_passing(context, request, -1, answer, &fd, 1);
  if (error || !(error = rocefs_share_pages(&mr->pages, address, length, fd))) return error;
  struct rocefs_request undo = {.op = ROCEFS_OP_DEREG_MR, .u.handle = answer->u.mr.handle};
  rocefs_request(context, &undo, NULL);
  return error;
}

struct ibv_mr* rocefs_reg_mr(struct ibv_pd* pd, void* address, size_t length, uint64_t iova,
                             int access) {
  struct rocefs_request request = {.op = ROCEFS_OP_REG_MR,
                                   .u.reg_mr = {.pd = pd->handle,
                                                .access = (uint32_t)access,
                                                .address = (uintptr_t)address,
                                                .length = length,
                                                .iova = iova}};
  struct rocefs_answer answer;
  struct rocefs_context* context = rocefs_context_of(pd->context);
  struct rocefs_mr* mr = calloc(1, sizeof *mr);
  if (!mr || !rocefs_add_region(&context->regions, address, length)) {
    free(mr);
    errno = ENOMEM;
    return NULL;
  }
  mr->address = address;
  mr->length = length;
  int error = share(context, mr, &request, &answer);
  if (error) { /* an ordinary region */
    rocefs_want_copier(context, length);
    request.op = ROCEFS_OP_REG_MR;
    error = rocefs_request(context, &request, &answer);
  }
  if (error) {
    rocefs_remove_region(&context->regions, address, length);
    free(mr);
    errno = error;
    return NULL;
  }
  mr->verbs.access = access;
  mr->verbs.ibv_mr.handle = answer.u.mr.handle;
  mr->verbs.ibv_mr.lkey = answer.u.mr.lkey;
  mr->verbs.ibv_mr.rkey = answer.u.mr.rkey;
  return &mr->verbs.ibv_mr;
}

/* Re-registers. libibverbs sets pd, addr and length of ibv_mr; requests name the memory by its own
 * addresses after a change of addr. The engine knows unchanged parts. On an error the region is as
 * before. */
int rocefs_rereg_mr(struct verbs_mr* mr, int flags, struct ibv_pd* pd, void* address, size_t length,
                    int access) {
  struct rocefs_request request = {
      .op = ROCEFS_OP_REREG_MR,
      .u.rereg_mr = {.handle = mr->ibv_mr.handle,
                     .flags = (uint32_t)flags,
                     .mr = {.pd = flags & IBV_REREG_MR_CHANGE_PD ? pd->handle : 0,
                            .access = (uint32_t)access,
                            .address = (uintptr_t)address,
                            .length = length,
                            .iova = (uintptr_t)address}}};
  struct rocefs_answer answer;
  struct rocefs_context* context = rocefs_context_of(mr->ibv_mr.context);
  struct rocefs_mr* ours = rocefs_mr_of(mr);
  bool moves = flags & IBV_REREG_MR_CHANGE_TRANSLATION;
  if (moves && !rocefs_add_region(&context->regions, address, length)) return ENOMEM;
  int error = rocefs_request(context, &request, &answer);
  if (moves) { /* one of the two is no region any more */
    rocefs_remove_region(&context->regions, error ? address : ours->address,
                         error ? length : ours->length);
  }
  if (error) return error;
  if (moves) {
    ours->address = address;
    ours->length = length;
    rocefs_unshare_pages(&ours->pages);
  }
  if (flags & IBV_REREG_MR_CHANGE_ACCESS) mr->access = access;
  mr->ibv_mr.lkey = answer.u.mr.lkey;
  mr->ibv_mr.rkey = answer.u.mr.rkey;
  return 0;
}

int rocefs_dereg_mr(struct verbs_mr* mr) {
  struct rocefs_request request = {.op = ROCEFS_OP_DEREG_MR, .u.handle = mr->ibv_mr.handle};
  struct rocefs_context* context = rocefs_context_of(mr->ibv_mr.context);
  int error = rocefs_destroy_error(context, rocefs_request(context, &request, NULL));
  if (error) return error;
  struct rocefs_mr* ours = rocefs_mr_of(mr);
  rocefs_remove_region(&context->regions, ours->address, ours->length);
  rocefs_unshare_pages(&ours->pages);
  free(ours);
  return 0;
}
