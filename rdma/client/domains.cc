// XRC domains of a client, and what belongs to them.
#include <cerrno>

#include "rdma/client/client.h"

namespace rocefs {

Result<void> Client::open_xrcd(const rocefs_open_xrcd& wanted, rocefs_answer& answer) {
  if (xrcds_.full()) return Error{ENOMEM, "too many XRC domains"};
  auto xrcd = std::make_unique<Xrcd>();
  if (wanted.flags & ROCEFS_XRCD_FILE) {
    XrcDomains::File file{process_->credentials().uid, wanted.device, wanted.inode};
    auto domain = shared_.domains.open(file, wanted.flags & ROCEFS_XRCD_CREATE,
                                       wanted.flags & ROCEFS_XRCD_EXCLUSIVE);
    if (!domain) return domain.error();
    xrcd->domain = std::move(*domain);
  } else {
    xrcd->domain = shared_.domains.make();
  }
  answer.u.handle = xrcds_.add(std::move(xrcd));
  return {};
}

Result<void> Client::close_xrcd(uint32_t handle) {
  Xrcd* xrcd = xrcds_.find(handle);
  if (!xrcd) return nothing_to_destroy("XRC domain", handle);
  if (xrcd->users > 0) return Error{EBUSY, "the XRC domain is in use"};
  xrcds_.take(handle);
  return {};
}

// Enters a shared receive queue in the table of those that packets name.
Result<void> Client::make_xrc(ClientSrq& srq) {
  const rocefs_create_srq& wanted = srq.created();
  Xrcd* xrcd = xrcds_.find(wanted.xrcd);
  ClientCq* cq = cqs_.find(wanted.cq);
  if (!xrcd) return no_such("XRC domain", wanted.xrcd);
  if (!cq) return no_such("completion queue", wanted.cq);
  srq.list(device_->xrc_queues(), *cq, xrcd->domain->number);
  return {};
}

Result<void> Client::create_xrc_target(const rocefs_create_qp& wanted, Attachment& attachment,
                                       rocefs_answer& answer) {
  Xrcd* xrcd = xrcds_.find(wanted.xrcd);
  if (!xrcd) return no_such("XRC domain", wanted.xrcd);
  auto made = XrcTarget::create(*device_, xrcd->domain, owner());
  if (!made) return made.error();
  return add_xrc_target(*xrcd, wanted, std::move(*made), attachment, answer);
}

Result<void> Client::open_xrc_target(const rocefs_create_qp& wanted, Attachment& attachment,
                                     rocefs_answer& answer) {
  Xrcd* xrcd = xrcds_.find(wanted.xrcd);
  if (!xrcd) return no_such("XRC domain", wanted.xrcd);
  auto found = xrcd->domain->targets.find(wanted.qpn);
  if (found == xrcd->domain->targets.end()) {
    return errorf(EINVAL, "queue pair {} is not one of the XRC domain's", wanted.qpn);
  }
  return add_xrc_target(*xrcd, wanted, found->second.lock(), attachment, answer);
}

Result<void> Client::add_xrc_target(Xrcd& xrcd, const rocefs_create_qp& wanted,
                                    std::shared_ptr<XrcTarget> target, Attachment& attachment,
                                    rocefs_answer& answer) {
  if (qps_.full()) return Error{ENOMEM, "too many queue pairs"};
  rocefs_create_qp held{};  // what its destruction gives back
  held.cookie = wanted.cookie;
  held.xrcd = wanted.xrcd;
  auto qp = std::make_unique<ClientQp>(*this, attachment.memory, attachment.layout, held);
  qp->attach(std::move(target));
  ++xrcd.users;
  answer.u.created = attachment.layout;
  answer.u.created.qpn = qp->qp().number();
  answer.u.created.handle = qps_.add(std::move(qp));
  return {};
}

}  // namespace rocefs
