// The queue pairs of a client.
#include <algorithm>
#include <cerrno>

#include "core/base/clock.h"
#include "rdma/client/client.h"

namespace rocefs {
namespace {

// Packets that may be unacknowledged: 2 MiB of the largest, so that the copy threads of both ends
// have work while the core forwards earlier packets.
constexpr uint32_t kWindow = 512;
// Destruction of a queue pair that has datagrams to send. Looks again soon at first, since engine
// time may be slowed down a million times, then seldom; the limit is one of real time, since the
// program waits.
constexpr TimeNs kFirstRetry = kMicrosecond, kLastRetry = 50 * kMicrosecond;
constexpr TimeNs kMaxDrain = 100 * kMillisecond;

}  // namespace

Result<void> Client::create_qp(const rocefs_create_qp& asked, Attachment& attachment,
                               rocefs_answer& answer) {
  std::optional<QpType> type = qp_type_of(asked.type);
  if (type == QpType::kXrcReceive) return create_xrc_target(asked, attachment, answer);
  bool receives = type != QpType::kXrcSend;
  rocefs_create_qp wanted = asked;
  wanted.xrcd = 0;
  if (!receives) wanted.receive_cq = 0;
  Pd* pd = pds_.find(wanted.pd);
  ClientCq* send_cq = cqs_.find(wanted.send_cq);
  ClientCq* receive_cq = receives ? cqs_.find(wanted.receive_cq) : send_cq;
  ClientSrq* srq = srqs_.find(wanted.srq);
  if (!pd) return no_such("protection domain", wanted.pd);
  if (!send_cq) return no_such("completion queue", wanted.send_cq);
  if (!receive_cq) return no_such("completion queue", wanted.receive_cq);
  if (wanted.srq && !srq) return no_such("shared receive queue", wanted.srq);
  if (srq && (srq->is_xrc() || !receives)) {
    return Error{EINVAL, "a queue pair has no shared receive queue of XRC"};
  }
  if (!type) return errorf(EOPNOTSUPP, "queue pairs of type {} are not supported", wanted.type);
  if (qps_.full()) return Error{ENOMEM, "too many queue pairs"};
  auto made = std::make_unique<ClientQp>(*this, attachment.memory, attachment.layout, wanted);
  QpInit init;
  init.type = *type;
  init.pd = pd->number;
  init.send_cq = send_cq;
  init.receive_cq = receive_cq;
  init.shared_receives = srq ? &srq->receives() : nullptr;
  init.send_depth = attachment.layout.entries;
  init.receive_depth = attachment.layout.receive_entries;
  init.owner = owner();
  init.observer = made.get();
  Result<uint32_t> bell = take_doorbell(*made);
  if (!bell) return bell.error();
  Result<Qp*> qp = device_->create_qp(init);
  Result<void> attached = qp ? made->attach(**qp, srq, attachment.layout) : qp.error();
  if (!attached) {
    give_doorbell(*made);
    if (qp) device_->destroy_qp(**qp);
    return attached;
  }
  ++pd->users;
  ++send_cq->users;
  if (receives) ++receive_cq->users;
  if (srq) ++srq->users;
  by_number_[(*qp)->number()] = made.get();
  answer.u.created = attachment.layout;
  answer.u.created.doorbell = *bell;
  answer.u.created.qpn = (*qp)->number();
  answer.u.created.handle = qps_.add(std::move(made));
  return {};
}

namespace {

// Attributes that the kernel takes for an end of XRC, and ignores: programs give both ends the
// same.
uint32_t ignored_by(QpType type) {
  if (type == QpType::kXrcSend) return kQpMaxDestRdAtomic | kQpMinRnrTimer;
  if (type == QpType::kXrcReceive) return kQpMaxRdAtomic | kQpRetryCount | kQpRnrRetry;
  return 0;
}

}  // namespace

Result<void> Client::modify_qp(const rocefs_qp_attr& wanted) {
  ClientQp* qp = qps_.find(wanted.handle);
  if (!qp) return no_such("queue pair", wanted.handle);
  Result<Modification> change = modification_of(*device_, qp->qp().state(), wanted);
  if (!change) return change.error();
  change->mask &= ~ignored_by(qp->qp().type());
  uint32_t qkey = change->mask & kQpQkey ? change->attributes.qkey : 0;
  if (is_controlled_qkey(qkey) && !process_->credentials().privileged()) {
    return errorf(EPERM, "Q_Key {:#x} is a controlled one, for root and the mount's own user",
                  qkey);
  }
  if (qp->qp().reliable() && change->to == QpState::kRtr) {
    change->attributes.window = kWindow;
    change->mask |= kQpWindow;
  }
  Result<void> modified = qp->qp().modify(change->to, change->attributes, change->mask);
  if (!modified) return modified;
  if (change->to == QpState::kReset) qp->drop();
  (void)qp->serve();
  return {};
}

Result<void> Client::query_qp(uint32_t handle, rocefs_answer& answer) {
  ClientQp* qp = qps_.find(handle);
  if (!qp) return no_such("queue pair", handle);
  answer.u.qp.handle = handle;
  describe(qp->qp().attributes(), qp->qp().state(), device_->port(qp->qp().attributes().port),
           answer.u.qp);
  bool drains = qp->qp().state() == QpState::kSqd && !qp->qp().requester().drained();
  answer.u.qp.send_draining = drains;
  return {};
}

Result<void> Client::destroy_qp(uint32_t handle, Attachment& attachment, rocefs_answer& answer) {
  ClientQp* qp = qps_.find(handle);
  if (!qp) return nothing_to_destroy("queue pair", handle);
  if (qp->groups > 0) return Error{EBUSY, "the queue pair is attached to a multicast group"};
  const rocefs_create_qp& created = qp->created();
  attachment.cookie = created.cookie;
  answer.u.events = {0, qp->async_events()};
  by_number_.erase(qp->qp().number());
  qp->destroy();
  give_doorbell(*qp);
  if (Pd* pd = pds_.find(created.pd)) --pd->users;
  if (ClientCq* cq = cqs_.find(created.send_cq)) --cq->users;
  if (ClientCq* cq = cqs_.find(created.receive_cq)) --cq->users;
  if (Xrcd* xrcd = xrcds_.find(created.xrcd)) --xrcd->users;
  if (qp->srq()) --qp->srq()->users;
  qps_.take(handle);
  return {};
}

// Null if no datagrams are left to send, also of those in the ring.
Scheduler* Client::draining(uint32_t handle) {
  ClientQp* qp = device_ ? qps_.find(handle) : nullptr;
  if (!qp || qp->qp().type() != QpType::kUd) return nullptr;
  (void)qp->serve();
  bool drains = qp->qp().state() == QpState::kRts && qp->qp().requester().queued() > 0;
  return drains ? &qp->qp().host().scheduler() : nullptr;
}

// A NIC sends a datagram sooner than the kernel can destroy its queue pair, and programs rely on
// it: libfabric's rxd posts its last acknowledgement and destroys the queue pair.
bool Client::drains_first(const rocefs_request& request, Attachment& attachment, Reply& reply) {
  Scheduler* scheduler = leaving_ ? nullptr : draining(request.u.handle);
  if (!scheduler) return false;
  TimeNs deadline = monotonic_ns() + kMaxDrain;
  leaving_.emplace(
      Leaving{request, std::move(attachment), std::move(reply), deadline, kFirstRetry});
  scheduler->after(retry_, kFirstRetry);
  return true;
}

void Client::retry_destroy(TimeNs) {
  Scheduler* scheduler = draining(leaving_->request.u.handle);
  if (scheduler && monotonic_ns() < leaving_->deadline) {
    leaving_->delay = std::min(2 * leaving_->delay, kLastRetry);
    return scheduler->after(retry_, leaving_->delay);
  }
  request(leaving_->request, std::move(leaving_->attachment), std::move(leaving_->reply));
  leaving_.reset();
}

Result<void> Client::attach_multicast(const rocefs_multicast& wanted) {
  ClientQp* qp = qps_.find(wanted.qp);
  if (!qp) return no_such("queue pair", wanted.qp);
  if (qp->qp().type() != QpType::kUd) return Error{EINVAL, "only UD has multicast groups"};
  if (groups_ == ROCEFS_MAX_MCAST_ATTACH) return Error{ENOMEM, "too many multicast groups"};
  Ip group;
  std::copy_n(wanted.gid, group.size(), group.begin());
  Result<bool> attached = device_->groups().attach(group, qp->qp().number());
  if (!attached) return attached.error();
  qp->groups += *attached;
  groups_ += *attached;
  return {};
}

Result<void> Client::detach_multicast(const rocefs_multicast& wanted) {
  ClientQp* qp = qps_.find(wanted.qp);
  if (!qp) return no_such("queue pair", wanted.qp);
  Ip group;
  std::copy_n(wanted.gid, group.size(), group.begin());
  Result<void> detached = device_->groups().detach(group, qp->qp().number());
  if (!detached) return detached;
  --qp->groups;
  --groups_;
  return {};
}

}  // namespace rocefs
