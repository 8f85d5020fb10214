// MulticastGroups: the UD queue pairs of a device by group. RoCE has no subnet administrator: a
// group exists while a queue pair is attached to it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <unordered_map>
#include <vector>

#include "core/base/result.h"
#include "rdma/wire/ip.h"

namespace rocefs {

// Destination QPN of a multicast packet.
inline constexpr uint32_t kMulticastQpn = 0xffffff;

// Core thread.
class MulticastGroups {
 public:
  // Called when a group has got its first member, and when it has lost its last one.
  using Changed = std::function<void(const Ip& group, bool exists)>;
  void on_change(Changed changed) { changed_ = std::move(changed); }

  // Idempotent; returns true if it was not attached before. EINVAL for an address that is no
  // group's.
  Result<bool> attach(const Ip& group, uint32_t qpn);
  // EINVAL if it is not attached.
  Result<void> detach(const Ip& group, uint32_t qpn);
  // Detaches from all groups. Costs as much as it is attached to, however many groups there are.
  void forget(uint32_t qpn);
  // Order of attachment; empty if there is no such group.
  const std::vector<uint32_t>& members(const Ip& group) const;

 private:
  using Groups = std::map<Ip, std::vector<uint32_t>>;

  void end_if_empty(Groups::iterator at);
  void tell(const Ip& group, bool exists) const {
    if (changed_) changed_(group, exists);
  }

  Changed changed_;
  Groups groups_;                                     // none of them empty
  std::unordered_map<uint32_t, std::set<Ip>> of_qp_;  // by queue pair; none of them empty
};

}  // namespace rocefs
