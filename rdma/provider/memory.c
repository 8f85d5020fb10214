/* Memory regions. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rdma/provider/rocefs.h"

struct rocefs_mr {
  struct verbs_mr verbs;
  struct rocefs_shared_pages pages;
  const void* address;
  size_t length;
  bool listed; /* in the context's regions: memory of the program */
};
static struct rocefs_mr* rocefs_mr_of(struct verbs_mr* mr) {
  return ROCEFS_CONTAINER(mr, struct rocefs_mr, verbs);
}

static bool contains(const void* address, size_t length, const void* object) {
  return (uintptr_t)object - (uintptr_t)address < length;
}

/* True if the region can be shared. One that holds what malloc() has given us is a whole heap,
 * which a child of fork() needs before it gets its copy. */
static bool shareable(const struct rocefs_context* context, const struct rocefs_mr* mr,
                      const void* address, size_t length, int access) {
  bool room = __atomic_load_n(&context->page_file.count, __ATOMIC_RELAXED) < ROCEFS_MAX_SHARED;
  return room && !(access & IBV_ACCESS_ON_DEMAND) && !contains(address, length, mr) &&
         !contains(address, length, context) && rocefs_can_share(address, length);
}

/* Registers a region of shared pages. On an errno nothing has changed. */
static int share(struct rocefs_context* context, struct rocefs_mr* mr,
                 struct rocefs_request* request, struct rocefs_answer* answer) {
  void* address = (void*)(uintptr_t)request->u.reg_mr.address;
  size_t length = request->u.reg_mr.length;
  request->op = ROCEFS_OP_SHARE_MR;
  int fd;
  int error = rocefs_request_passing(context, request, -1, answer, &fd, 1);
  if (error || !(error = rocefs_share_pages(&mr->pages, &context->page_file, address, length, fd,
                                            answer->u.mr.offset)))
    return error;
  struct rocefs_request undo = {.op = ROCEFS_OP_DEREG_MR, .u.handle = answer->u.mr.handle};
  rocefs_request(context, &undo, NULL);
  return error;
}

struct ibv_mr* rocefs_reg_mr(struct ibv_pd* pd, void* address, size_t length, uint64_t iova,
                             int access) {
  ROCEFS_UNCANCELLED;
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
  /* Listed before: of two threads that register the same memory at least one sees the other. */
  bool shared = shareable(context, mr, address, length, access);
  mr->address = address;
  mr->length = length;
  mr->listed = true;
  int error = shared ? share(context, mr, &request, &answer) : EINVAL;
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
  rocefs_count_object(pd, 1);
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
  ROCEFS_UNCANCELLED;
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
  if (flags & IBV_REREG_MR_CHANGE_PD) {
    rocefs_count_object(mr->ibv_mr.pd, -1);
    rocefs_count_object(pd, 1);
  }
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
  ROCEFS_UNCANCELLED;
  struct rocefs_request request = {.op = ROCEFS_OP_DEREG_MR, .u.handle = mr->ibv_mr.handle};
  struct rocefs_context* context = rocefs_context_of(mr->ibv_mr.context);
  int error = rocefs_destroy_error(context, rocefs_request(context, &request, NULL));
  if (error) return error;
  struct rocefs_mr* ours = rocefs_mr_of(mr);
  rocefs_count_object(mr->ibv_mr.pd, -1);
  if (ours->listed) rocefs_remove_region(&context->regions, ours->address, ours->length);
  rocefs_unshare_pages(&ours->pages);
  free(ours);
  return 0;
}

/* Touches the pages of regions that are paged on demand, as the program itself would. */
static int populate(const struct ibv_sge* part, bool writes) {
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  uintptr_t begin = part->addr / page * page;
  size_t length = part->addr - begin + part->length;
  int advice = writes ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
  if (part->length == 0 || !madvise((void*)begin, length, advice)) return 0;
  if (errno == ENOMEM) return EFAULT;
  if (errno != EINVAL) return errno;
  /* Pages that the program may not touch; or an advice that Linux before 5.14 does not know. */
  return madvise((void*)begin, 0, advice) ? 0 : EFAULT;
}

int rocefs_advise_mr(struct ibv_pd* pd, enum ibv_advise_mr_advice advice, uint32_t flags,
                     struct ibv_sge* list, uint32_t count) {
  struct rocefs_context* context = rocefs_context_of(pd->context);
  if (flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH) return EINVAL;
  for (uint32_t i = 0; i < count; ++i)
    if (!rocefs_is_registered(&context->regions, list[i].addr, list[i].length)) return EINVAL;
  switch (advice) {
    case IBV_ADVISE_MR_ADVICE_PREFETCH:
    case IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE:
      for (uint32_t i = 0; i < count; ++i) {
        int error = populate(&list[i], advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE);
        if (error) return error;
      }
      return 0;
    case IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT: /* pages that are there need nothing */
      return 0;
  }
  return EOPNOTSUPP;
}

struct ibv_mr* rocefs_reg_dm_mr(struct ibv_pd* pd, struct ibv_dm* dm, uint64_t offset,
                                size_t length, unsigned access) {
  struct rocefs_request request = {.op = ROCEFS_OP_REG_DM_MR,
                                   .u.reg_dm_mr = {.offset = offset,
                                                   .length = length,
                                                   .pd = pd->handle,
                                                   .dm = dm->handle,
                                                   .access = access}};
  struct rocefs_answer answer;
  struct rocefs_mr* mr = calloc(1, sizeof *mr);
  if (!mr) return NULL;
  int error = rocefs_request(rocefs_context_of(pd->context), &request, &answer);
  if (error) {
    free(mr);
    errno = error;
    return NULL;
  }
  rocefs_count_object(pd, 1);
  mr->verbs.access = (int)access;
  /* Fills libibverbs' part, which libibverbs does in ibv_reg_mr() alone. */
  mr->verbs.ibv_mr = (struct ibv_mr){.context = pd->context,
                                     .pd = pd,
                                     .length = length,
                                     .handle = answer.u.mr.handle,
                                     .lkey = answer.u.mr.lkey,
                                     .rkey = answer.u.mr.rkey};
  return &mr->verbs.ibv_mr;
}
