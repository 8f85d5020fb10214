#include "rdma/nic/qp_table.h"

#include <cerrno>

namespace rocefs {

QpTable::QpTable(QpHost& host) : host_(host), reap_(event_of<&QpTable::reap>(this)) {}

Result<Qp*> QpTable::create(const QpInit& init) {
  Shares::Share share = shares_.take(init.owner.uid, init.owner.privileged);
  if (!share) return Error{ENOMEM, "no queue pair is free for this user"};
  uint32_t slot = 0;
  if (free_slots_.size() > kMinFreeSlots || qps_.size() == kMaxQps) {
    slot = free_slots_.front();
    free_slots_.pop_front();
  } else {
    slot = static_cast<uint32_t>(qps_.size());
    qps_.emplace_back();
    taken_.emplace_back();
  }
  taken_[slot] = std::move(share);
  qps_[slot] = std::make_unique<Qp>(host_, kFirstQpn + slot, ++serial_, init);
  return qps_[slot].get();
}

void QpTable::destroy(Qp& qp) {
  uint32_t slot = qp.number() - kFirstQpn;
  qp.retire(discarded_);
  std::unique_ptr<Qp> owned = std::move(qps_[slot]);
  taken_[slot].reset();
  free_slots_.push_back(slot);
  if (owned->memory_pending()) dying_.push_back(std::move(owned));
}

std::optional<uint32_t> QpTable::sender_of(const Ip& local, const Ip& remote, uint32_t remote_qpn,
                                           std::optional<uint32_t> last) const {
  auto sends = [&](const Qp* qp) {
    if (!qp || qp->type() == QpType::kUd || !qp->receives_packets()) return false;
    const QpAttributes& attributes = qp->attributes();
    return attributes.remote_qpn == remote_qpn && attributes.path.local == local &&
           attributes.path.remote == remote;
  };
  if (last && sends(find(*last))) return last;
  for (const auto& qp : qps_) {
    if (sends(qp.get())) return qp->number();
  }
  return std::nullopt;
}

void QpTable::reap_later() {
  if (!dying_.empty() && !reap_.scheduled()) host_.scheduler().after(reap_, 0);
}

void QpTable::reap(TimeNs) {
  std::erase_if(dying_, [](const auto& qp) { return !qp->memory_pending(); });
}

void QpTable::clear() {
  dying_.clear();
  qps_.clear();
  taken_.clear();
}

}  // namespace rocefs
