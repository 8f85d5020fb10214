/* XRC domains; ibv_open_xrcd(3). */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "rdma/provider/rocefs.h"

struct ibv_xrcd* rocefs_open_xrcd(struct ibv_context* ibv, struct ibv_xrcd_init_attr* attr) {
  const uint32_t needed = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  struct rocefs_request request = {.op = ROCEFS_OP_OPEN_XRCD};
  struct rocefs_open_xrcd* wanted = &request.u.open_xrcd;
  struct rocefs_answer answer;
  struct stat file;
  if (attr->comp_mask != needed || (attr->oflags & ~(O_CREAT | O_EXCL))) {
    errno = EINVAL;
    return NULL;
  }
  if (attr->fd != -1) {
    if (fstat(attr->fd, &file)) return NULL;
    wanted->device = file.st_dev;
    wanted->inode = file.st_ino;
    wanted->flags = ROCEFS_XRCD_FILE | (attr->oflags & O_CREAT ? ROCEFS_XRCD_CREATE : 0) |
                    (attr->oflags & O_EXCL ? ROCEFS_XRCD_EXCLUSIVE : 0);
  }
  struct rocefs_xrcd* xrcd = calloc(1, sizeof *xrcd);
  if (!xrcd) return NULL;
  int error = rocefs_request(rocefs_context_of(ibv), &request, &answer);
  if (error) {
    free(xrcd);
    errno = error;
    return NULL;
  }
  xrcd->ibv.context = ibv;
  xrcd->handle = answer.u.handle;
  return &xrcd->ibv;
}

int rocefs_close_xrcd(struct ibv_xrcd* ibv) {
  struct rocefs_context* context = rocefs_context_of(ibv->context);
  struct rocefs_request request = {.op = ROCEFS_OP_CLOSE_XRCD, .u.handle = rocefs_xrcd_handle(ibv)};
  int error = rocefs_destroy_error(context, rocefs_request(context, &request, NULL));
  if (!error) free(ROCEFS_CONTAINER(ibv, struct rocefs_xrcd, ibv));
  return error;
}
