/* Address handles. The engine only checks them: each request carries the address. */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rdma/provider/rocefs.h"

void rocefs_address_from_ah(struct rocefs_address* address, const struct ibv_ah_attr* attr) {
  memset(address, 0, sizeof *address);
  memcpy(address->dgid, attr->grh.dgid.raw, sizeof address->dgid);
  address->is_global = attr->is_global != 0;
  address->sgid_index = attr->grh.sgid_index;
  address->hop_limit = attr->grh.hop_limit;
  address->traffic_class = attr->grh.traffic_class;
  address->port = attr->port_num;
  address->sl = attr->sl;
  address->flow_label = attr->grh.flow_label;
}

void rocefs_address_to_ah(const struct rocefs_address* address, struct ibv_ah_attr* attr) {
  memset(attr, 0, sizeof *attr);
  memcpy(attr->grh.dgid.raw, address->dgid, sizeof address->dgid);
  attr->is_global = address->is_global;
  attr->grh.sgid_index = address->sgid_index;
  attr->grh.hop_limit = address->hop_limit;
  attr->grh.traffic_class = address->traffic_class;
  attr->port_num = address->port;
  attr->sl = address->sl;
  attr->grh.flow_label = address->flow_label;
}

/* An address handle's number, which shows that it is one. */
static uint32_t number_of(const struct rocefs_ah* ah) {
  return (uint32_t)((uintptr_t)ah >> 4);
}

/* Counts one handle more; returns an errno. */
static int count_handle(struct rocefs_context* context, struct ibv_pd* pd) {
  uint32_t handles = __atomic_add_fetch(&context->handles, 1, __ATOMIC_RELAXED);
  rocefs_count_handle(pd, 1);
  return handles > context->attr.max_ah ? ENOMEM : 0;
}

static void forget_handle(struct rocefs_context* context, struct ibv_pd* pd) {
  __atomic_sub_fetch(&context->handles, 1, __ATOMIC_RELAXED);
  rocefs_count_handle(pd, -1);
}

struct ibv_ah* rocefs_create_ah(struct ibv_pd* pd, struct ibv_ah_attr* attr) {
  struct rocefs_request request = {.op = ROCEFS_OP_CHECK_ADDRESS};
  if (!attr->is_global) { /* RoCE has no LIDs (IBTA annex A17) */
    errno = EINVAL;
    return NULL;
  }
  struct rocefs_context* context = rocefs_context_of(pd->context);
  struct rocefs_ah* ah = calloc(1, sizeof *ah);
  if (!ah) return NULL;
  rocefs_address_from_ah(&ah->path, attr);
  request.u.address = ah->path;
  int error = count_handle(context, pd);
  if (!error) error = rocefs_request(context, &request, NULL);
  if (error) {
    forget_handle(context, pd);
    free(ah);
    errno = error;
    return NULL;
  }
  ah->ibv.handle = number_of(ah);
  return &ah->ibv;
}

int rocefs_destroy_ah(struct ibv_ah* ibv) {
  struct rocefs_ah* ah = ROCEFS_CONTAINER(ibv, struct rocefs_ah, ibv);
  if (ibv->handle != number_of(ah)) return errno = ENOENT; /* as the kernel's uverbs */
  forget_handle(rocefs_context_of(ibv->context), ibv->pd);
  ibv->handle = 0;
  free(ah);
  return 0;
}
