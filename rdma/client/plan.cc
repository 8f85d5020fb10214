// Layout of memory shared with a client: rings of a queue, pages of a region.
#include <bit>
#include <cerrno>

#include "rdma/client/convert.h"
#include "rdma/client/copier.h"
#include "rdma/client/server.h"

namespace rocefs {
namespace {

constexpr uint64_t kPage = 4096;

uint64_t pages(uint64_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

uint32_t slots(uint32_t wanted) {
  return std::bit_ceil(std::max(1u, wanted));
}

Error too_large(std::string_view what, uint64_t value, uint64_t most) {
  return errorf(EINVAL, "{} {}: at most {}", what, value, most);
}

Result<rocefs_created> plan_cq(uint32_t entries) {
  if (entries == 0) return Error{EINVAL, "a completion queue without entries"};
  if (entries > ROCEFS_MAX_CQE) {
    return too_large("completion queue entries", entries, ROCEFS_MAX_CQE);
  }
  rocefs_created made{};
  made.entries = slots(entries);
  made.size = ROCEFS_CQ_ENTRIES + pages(made.entries * sizeof(rocefs_cqe));
  return made;
}

Result<rocefs_created> plan_srq(const rocefs_create_srq& wanted) {
  if (wanted.max_wr == 0) return Error{EINVAL, "a shared receive queue without requests"};
  if (wanted.max_wr > ROCEFS_MAX_SRQ_WR) {
    return too_large("receive requests", wanted.max_wr, ROCEFS_MAX_SRQ_WR);
  }
  if (wanted.max_sge > ROCEFS_MAX_SGE) {
    return too_large("scatter entries", wanted.max_sge, ROCEFS_MAX_SGE);
  }
  rocefs_created made{};
  made.receive_entries = slots(wanted.max_wr);
  made.receive_offset = kPage;
  made.size = kPage + pages(made.receive_entries * sizeof(rocefs_receive_wqe));
  return made;
}

Result<rocefs_created> plan_qp(const rocefs_create_qp& wanted, std::optional<QpType> type) {
  bool sends = type != QpType::kXrcReceive;
  bool receives = !wanted.srq && sends && type != QpType::kXrcSend;
  uint32_t most_wr = std::max(sends ? wanted.max_send_wr : 0, receives ? wanted.max_receive_wr : 0);
  uint32_t most_sge =
      std::max(sends ? wanted.max_send_sge : 0, receives ? wanted.max_receive_sge : 0);
  if (most_wr > ROCEFS_MAX_QP_WR) return too_large("work requests", most_wr, ROCEFS_MAX_QP_WR);
  if (most_sge > ROCEFS_MAX_SGE)
    return too_large("scatter/gather entries", most_sge, ROCEFS_MAX_SGE);
  if (wanted.max_inline > ROCEFS_MAX_INLINE) {
    return too_large("bytes of inline data", wanted.max_inline, ROCEFS_MAX_INLINE);
  }
  rocefs_created made{};
  made.entries = sends ? slots(wanted.max_send_wr) : 0;
  made.receive_entries = receives ? slots(wanted.max_receive_wr) : 0;
  made.max_inline = ROCEFS_MAX_INLINE;
  made.send_offset = kPage;
  made.receive_offset = kPage + pages(made.entries * sizeof(rocefs_send_wqe));
  made.size = made.receive_offset + pages(made.receive_entries * sizeof(rocefs_receive_wqe));
  return made;
}

Result<rocefs_created> plan_dm(const rocefs_alloc_dm& wanted) {
  constexpr uint32_t kLogPage = 12;
  if (wanted.length == 0 || wanted.length > ROCEFS_MAX_DM) {
    return errorf(EINVAL, "{} bytes of device memory: at most {}", wanted.length,
                  static_cast<int>(ROCEFS_MAX_DM));
  }
  if (wanted.log_align > kLogPage) {
    return errorf(EINVAL, "device memory aligned to 2^{}: at most 2^{}", wanted.log_align,
                  kLogPage);
  }
  rocefs_created made{};
  made.size = pages(wanted.length);
  return made;
}

Result<rocefs_created> plan_region(uint64_t length) {
  if (length == 0 || length % kPage != 0) {
    return errorf(EINVAL, "a shared region of {} bytes: only whole pages can be shared", length);
  }
  rocefs_created made{};
  made.size = length;
  return made;
}

}  // namespace

Result<rocefs_created> plan(const rocefs_request& request) {
  switch (request.op) {
    case ROCEFS_OP_CREATE_CQ:
      return plan_cq(request.u.create_cq.entries);
    case ROCEFS_OP_RESIZE_CQ:
      return plan_cq(request.u.resize_cq.entries);
    case ROCEFS_OP_CREATE_SRQ:
      return plan_srq(request.u.create_srq);
    case ROCEFS_OP_CREATE_QP:
      return plan_qp(request.u.create_qp, qp_type_of(request.u.create_qp.type));
    case ROCEFS_OP_OPEN_QP:
      return plan_qp(request.u.create_qp, QpType::kXrcReceive);
    case ROCEFS_OP_ALLOC_DM:
      return plan_dm(request.u.alloc_dm);
    case ROCEFS_OP_SHARE_MR:
      return plan_region(request.u.reg_mr.length);
    case ROCEFS_OP_CREATE_COPIER: {
      rocefs_created made{};
      made.size = Copier::kBytes;
      return made;
    }
  }
  return rocefs_created{};
}

}  // namespace rocefs
