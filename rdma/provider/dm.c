/* Device memory: bytes of the engine, which the program reaches by copies alone; ibv_alloc_dm(3).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rdma/provider/rocefs.h"

struct rocefs_dm {
  struct ibv_dm ibv;
  char* memory;
  size_t size; /* of the mapping */
  size_t length;
};
static struct rocefs_dm* dm_of(struct ibv_dm* dm) {
  return ROCEFS_CONTAINER(dm, struct rocefs_dm, ibv);
}

/* Copies are of whole words, as on HCAs; returns an errno. */
static int check(const struct rocefs_dm* dm, uint64_t offset, size_t length) {
  if (offset % sizeof(uint32_t) || length % sizeof(uint32_t)) return EINVAL;
  return offset <= dm->length && length <= dm->length - offset ? 0 : EFAULT;
}

static int copy_to(struct ibv_dm* ibv, uint64_t offset, const void* from, size_t length) {
  int error = check(dm_of(ibv), offset, length);
  if (!error) memcpy(dm_of(ibv)->memory + offset, from, length);
  return error;
}

static int copy_from(void* to, struct ibv_dm* ibv, uint64_t offset, size_t length) {
  int error = check(dm_of(ibv), offset, length);
  if (!error) memcpy(to, dm_of(ibv)->memory + offset, length);
  return error;
}

static int map_dm(struct rocefs_dm* dm, const struct rocefs_created* created, int fd) {
  if (created->size < dm->length) {
    if (fd >= 0) close(fd);
    return EPROTO;
  }
  dm->size = created->size;
  dm->memory = rocefs_map(fd, created->size, PROT_READ | PROT_WRITE);
  dm->ibv.handle = created->handle;
  return dm->memory ? 0 : errno;
}

static int create(struct rocefs_context* context, struct rocefs_dm* dm, uint32_t log_align) {
  struct rocefs_request request = {.op = ROCEFS_OP_ALLOC_DM,
                                   .u.alloc_dm = {.length = dm->length, .log_align = log_align}};
  struct rocefs_answer answer;
  int fd;
  int error = rocefs_request_passing(context, &request, -1, &answer, &fd, 1);
  if (error || !(error = map_dm(dm, &answer.u.created, fd))) return error;
  struct rocefs_request undo = {.op = ROCEFS_OP_FREE_DM, .u.handle = answer.u.created.handle};
  rocefs_request(context, &undo, NULL);
  return error;
}

struct ibv_dm* rocefs_alloc_dm(struct ibv_context* context, struct ibv_alloc_dm_attr* attr) {
  struct rocefs_dm* dm = attr->comp_mask ? NULL : calloc(1, sizeof *dm);
  if (!dm) {
    errno = attr->comp_mask ? EINVAL : ENOMEM;
    return NULL;
  }
  dm->length = attr->length;
  int error = create(rocefs_context_of(context), dm, attr->log_align_req);
  if (error) {
    free(dm);
    errno = error;
    return NULL;
  }
  dm->ibv.context = context;
  dm->ibv.memcpy_to_dm = copy_to;
  dm->ibv.memcpy_from_dm = copy_from;
  return &dm->ibv;
}

int rocefs_free_dm(struct ibv_dm* ibv) {
  struct rocefs_context* context = rocefs_context_of(ibv->context);
  struct rocefs_dm* dm = dm_of(ibv);
  struct rocefs_request request = {.op = ROCEFS_OP_FREE_DM, .u.handle = ibv->handle};
  int error = rocefs_destroy_error(context, rocefs_request(context, &request, NULL));
  if (error) return error;
  munmap(dm->memory, dm->size);
  free(dm);
  return 0;
}
