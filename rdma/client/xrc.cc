#include "rdma/client/xrc.h"

#include <cerrno>

namespace rocefs {

Result<std::shared_ptr<XrcDomain>> XrcDomains::open(const File& file, bool create, bool exclusive) {
  std::erase_if(named_, [](const auto& one) { return one.second.expired(); });
  auto found = named_.find(file);
  if (found == named_.end()) {
    if (!create) return Error{EAGAIN, "no XRC domain of that file, and O_CREAT is not given"};
    std::shared_ptr<XrcDomain> made = make();
    named_[file] = made;
    return made;
  }
  if (exclusive) return Error{EINVAL, "the XRC domain of that file exists, and O_EXCL is given"};
  return found->second.lock();
}

Result<std::shared_ptr<XrcTarget>> XrcTarget::create(Device& device,
                                                     std::shared_ptr<XrcDomain> domain,
                                                     const QpOwner& owner) {
  std::shared_ptr<XrcTarget> target(new XrcTarget(device, std::move(domain)));
  QpInit init;
  init.type = QpType::kXrcReceive;
  init.xrc_domain = target->domain_->number;
  init.send_depth = init.receive_depth = 0;
  init.owner = owner;
  init.observer = target.get();
  Result<Qp*> qp = device.create_qp(init);
  if (!qp) return qp.error();
  target->qp_ = *qp;
  target->domain_->targets[(*qp)->number()] = target;
  return target;
}

XrcTarget::~XrcTarget() {
  if (!qp_) return;
  domain_->targets.erase(qp_->number());
  device_.destroy_qp(*qp_);
}

}  // namespace rocefs
