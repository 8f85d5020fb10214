// QpTable: queue pairs of a device by number, from creation until memory has finished with them.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/result.h"
#include "core/base/shares.h"
#include "core/loop/scheduler.h"
#include "rdma/transport/completion_queue.h"
#include "rdma/transport/qp.h"
#include "rdma/uapi/registers.h"

namespace rocefs {

// Core thread.
class QpTable {
 public:
  static constexpr uint32_t kMaxQps = ROCEFS_MAX_QPS;
  static constexpr uint32_t kKeptQps = kMaxQps / 8;  // for root and the mount's owner

  // `host` outlives the table.
  explicit QpTable(QpHost& host);
  QpTable(const QpTable&) = delete;
  QpTable& operator=(const QpTable&) = delete;

  // ENOMEM when all numbers are in use, or the owner's user has used up its share of them.
  Result<Qp*> create(const QpInit& init);
  // Completion queues of the queue pair are not used after this call.
  void destroy(Qp& qp);
  // Asks the CPU for what find() will read.
  void prefetch(uint32_t number) const {
    uint32_t slot = number - kFirstQpn;
    if (slot < qps_.size()) __builtin_prefetch(&qps_[slot]);
  }
  // Null if there is none.
  Qp* find(uint32_t number) const {
    uint32_t slot = number - kFirstQpn;
    return slot < qps_.size() ? qps_[slot].get() : nullptr;
  }
  // Number of the connected queue pair that sends from `local` to `remote_qpn` at `remote`. `last`:
  // the number that was right before; others are searched only if it is not any more.
  std::optional<uint32_t> sender_of(const Ip& local, const Ip& remote, uint32_t remote_qpn,
                                    std::optional<uint32_t> last = {}) const;
  // `visit` may destroy the queue pair that it is given.
  template <class Visit>
  void each(Visit visit) {
    for (const auto& qp : qps_) {
      if (qp) visit(*qp);
    }
  }
  // Frees, in a later event, destroyed queue pairs that memory has finished with. The call may come
  // from within one.
  void reap_later();
  // Frees all queue pairs, destroyed ones too, without completions or events.
  void clear();

 private:
  static constexpr uint32_t kFirstQpn = ROCEFS_FIRST_QPN;
  static constexpr size_t kMinFreeSlots = 256;  // freed numbers rest before they are used again

  void reap(TimeNs now);

  QpHost& host_;
  Shares shares_{kMaxQps, kKeptQps};
  std::vector<std::unique_ptr<Qp>> qps_;
  std::vector<Shares::Share> taken_;  // of users, by slot
  std::deque<uint32_t> free_slots_;
  std::vector<std::unique_ptr<Qp>> dying_;
  CompletionQueue discarded_{0};
  uint32_t serial_ = 0;  // of the newest queue pair
  Event reap_;
};

}  // namespace rocefs
