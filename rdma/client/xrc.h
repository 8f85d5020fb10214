// XRC (IBTA A14): domains, which the programs of a user share by a file, and their receiving queue
// pairs, which these programs share too. Core thread.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "core/base/result.h"
#include "rdma/nic/device.h"

namespace rocefs {

class XrcTarget;

struct XrcDomain {
  uint32_t number = 0;
  std::map<uint32_t, std::weak_ptr<XrcTarget>> targets;  // by queue pair number
};

// The domains of a device.
class XrcDomains {
 public:
  // The file by which programs find the same domain. One that lies about it reaches only domains of
  // its own user.
  struct File {
    uint32_t uid;
    uint64_t device, inode;
    auto operator<=>(const File&) const = default;
  };

  // A domain that no one else can open.
  std::shared_ptr<XrcDomain> make() { return std::make_shared<XrcDomain>(XrcDomain{++last_, {}}); }
  // EAGAIN: there is none and `create` is not set; EINVAL: there is one and `exclusive` is set.
  Result<std::shared_ptr<XrcDomain>> open(const File& file, bool create, bool exclusive);

 private:
  std::map<File, std::weak_ptr<XrcDomain>> named_;
  uint32_t last_ = 0;
};

// A receiving queue pair, which exists while a program has it open.
class XrcTarget final : public QpObserver {
 public:
  // ENOMEM, ENODEV as Device::create_qp().
  static Result<std::shared_ptr<XrcTarget>> create(Device& device,
                                                   std::shared_ptr<XrcDomain> domain,
                                                   const QpOwner& owner);
  ~XrcTarget();

  Qp& qp() { return *qp_; }
  // Observers get all events from now on.
  void add(QpObserver& observer) { observers_.push_back(&observer); }
  void remove(QpObserver& observer) { std::erase(observers_, &observer); }
  void qp_event(QpEvent event) override {
    for (QpObserver* observer : observers_) observer->qp_event(event);
  }

 private:
  XrcTarget(Device& device, std::shared_ptr<XrcDomain> domain)
      : device_(device), domain_(std::move(domain)) {}

  Device& device_;
  const std::shared_ptr<XrcDomain> domain_;
  Qp* qp_ = nullptr;
  std::vector<QpObserver*> observers_;
};

// Entry of an SRQ in the device's table of those that packets name.
class XrcListing {
 public:
  XrcListing(XrcQueues& queues, const XrcQueues::Entry& entry)
      : queues_(queues), number_(queues.add(entry)) {}
  ~XrcListing() { queues_.remove(number_); }
  XrcListing(const XrcListing&) = delete;
  XrcListing& operator=(const XrcListing&) = delete;
  uint32_t number() const { return number_; }

 private:
  XrcQueues& queues_;
  const uint32_t number_;
};

}  // namespace rocefs
