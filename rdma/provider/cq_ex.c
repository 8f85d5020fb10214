/* Completion queues that are read field by field; ibv_create_cq_ex(3). From ibv_start_poll() to
 * ibv_end_poll() the queue belongs to the polling thread. */
#include <endian.h>
#include <errno.h>
#include <time.h>

#include "rdma/provider/rocefs.h"

static struct rocefs_cq* cq_of(struct ibv_cq_ex* ex) {
  return ROCEFS_CONTAINER(ex, struct rocefs_cq, verbs.cq_ex);
}
static const struct rocefs_cqe* current_of(struct ibv_cq_ex* ex) {
  return &cq_of(ex)->current;
}

static int next_poll(struct ibv_cq_ex* ex) {
  struct rocefs_cq* cq = cq_of(ex);
  if (!rocefs_count_completions(cq, cq->next)) return ENOENT;
  if (!rocefs_take_completion(cq, cq->next, &cq->current)) return ENOENT;
  ++cq->next;
  ex->wr_id = cq->current.wr_id;
  ex->status = (enum ibv_wc_status)cq->current.status;
  return 0;
}

static void end_poll(struct ibv_cq_ex* ex) {
  struct rocefs_cq* cq = cq_of(ex);
  __atomic_store_n(&cq->page->consumed, cq->next, __ATOMIC_RELEASE);
  pthread_mutex_unlock(&cq->lock);
  rocefs_thread_is_busy();
}

static int try_poll(struct ibv_cq_ex* ex) {
  struct rocefs_cq* cq = cq_of(ex);
  pthread_mutex_lock(&cq->lock);
  cq->next = cq->page->consumed;
  int error = next_poll(ex);
  if (error) pthread_mutex_unlock(&cq->lock);
  return error;
}

static int start_poll(struct ibv_cq_ex* ex, struct ibv_poll_cq_attr* attr) {
  if (attr->comp_mask) return EINVAL;
  int error = try_poll(ex);
  if (error != ENOENT) return error;
  bool gone = rocefs_is_gone(rocefs_context_of(ex->context));
  if (gone || rocefs_thread_is_idle(cq_of(ex))) error = try_poll(ex);
  return error && gone ? EIO : error;
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex* ex) {
  return (enum ibv_wc_opcode)current_of(ex)->opcode;
}
static uint32_t read_vendor_err(struct ibv_cq_ex* ex) {
  (void)ex;
  return 0;
}
static uint32_t read_byte_len(struct ibv_cq_ex* ex) {
  return current_of(ex)->byte_len;
}
/* Key for ibv_wc_read_invalidated_rkey() as well. */
static __be32 read_imm_data(struct ibv_cq_ex* ex) {
  const struct rocefs_cqe* cqe = current_of(ex);
  return cqe->flags & ROCEFS_WC_WITH_INV ? cqe->immediate : htobe32(cqe->immediate);
}
static uint32_t read_qp_num(struct ibv_cq_ex* ex) {
  return current_of(ex)->qpn;
}
static uint32_t read_src_qp(struct ibv_cq_ex* ex) {
  return current_of(ex)->source_qpn;
}
static unsigned read_wc_flags(struct ibv_cq_ex* ex) {
  return current_of(ex)->flags;
}
/* RoCE has no LIDs in its packets. */
static uint32_t read_slid(struct ibv_cq_ex* ex) {
  (void)ex;
  return 0;
}
/* RoCE has no service levels either; HCAs give the type of a datagram's IP header there. */
static uint8_t read_sl(struct ibv_cq_ex* ex) {
  return (uint8_t)current_of(ex)->l3_type;
}
static uint8_t read_dlid_path_bits(struct ibv_cq_ex* ex) {
  (void)ex;
  return 0;
}

static uint64_t read_timestamp(struct ibv_cq_ex* ex) {
  return current_of(ex)->timestamp;
}
/* Nanoseconds since 1970, by the clocks as they stand now. */
static uint64_t read_wallclock(struct ibv_cq_ex* ex) {
  struct timespec wall, monotonic;
  clock_gettime(CLOCK_MONOTONIC, &monotonic);
  clock_gettime(CLOCK_REALTIME, &wall);
  int64_t ahead =
      (wall.tv_sec - monotonic.tv_sec) * INT64_C(1000000000) + wall.tv_nsec - monotonic.tv_nsec;
  return current_of(ex)->timestamp + (uint64_t)ahead;
}

static const uint64_t kStamps =
    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;

static int check(const struct ibv_cq_init_attr_ex* attr) {
  bool flagged = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS;
  const uint32_t known = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD;
  if (attr->comp_mask & ~known) return EOPNOTSUPP;
  if (flagged && (attr->flags & ~(uint32_t)IBV_CREATE_CQ_ATTR_SINGLE_THREADED)) return EOPNOTSUPP;
  if (attr->wc_flags & ~((uint64_t)IBV_WC_STANDARD_FLAGS | kStamps)) return EOPNOTSUPP;
  return attr->cqe > INT32_MAX ? EINVAL : 0;
}

struct ibv_cq_ex* rocefs_create_cq_ex(struct ibv_context* context,
                                      struct ibv_cq_init_attr_ex* attr) {
  int error = check(attr);
  if (error) {
    errno = error;
    return NULL;
  }
  struct ibv_cq* cq = rocefs_make_cq(context, (int)attr->cqe, attr->channel, (int)attr->comp_vector,
                                     attr->wc_flags & kStamps);
  if (!cq) return NULL;
  struct ibv_cq_ex* ex = &rocefs_cq_of(cq)->verbs.cq_ex;
  ex->start_poll = start_poll;
  ex->next_poll = next_poll;
  ex->end_poll = end_poll;
  ex->read_opcode = read_opcode;
  ex->read_vendor_err = read_vendor_err;
  ex->read_wc_flags = read_wc_flags;
  if (attr->wc_flags & IBV_WC_EX_WITH_BYTE_LEN) ex->read_byte_len = read_byte_len;
  if (attr->wc_flags & IBV_WC_EX_WITH_IMM) ex->read_imm_data = read_imm_data;
  if (attr->wc_flags & IBV_WC_EX_WITH_QP_NUM) ex->read_qp_num = read_qp_num;
  if (attr->wc_flags & IBV_WC_EX_WITH_SRC_QP) ex->read_src_qp = read_src_qp;
  if (attr->wc_flags & IBV_WC_EX_WITH_SLID) ex->read_slid = read_slid;
  if (attr->wc_flags & IBV_WC_EX_WITH_SL) ex->read_sl = read_sl;
  if (attr->wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP) ex->read_completion_ts = read_timestamp;
  if (attr->wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
    ex->read_completion_wallclock_ns = read_wallclock;
  if (attr->wc_flags & IBV_WC_EX_WITH_DLID_PATH_BITS) ex->read_dlid_path_bits = read_dlid_path_bits;
  return ex;
}
