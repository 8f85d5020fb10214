#include "rdma/nic/multicast.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace rocefs {

Result<bool> MulticastGroups::attach(const Ip& group, uint32_t qpn) {
  if (!is_multicast(group)) return Error{EINVAL, "the GID is no multicast group's"};
  std::vector<uint32_t>& members = groups_[group];
  if (std::find(members.begin(), members.end(), qpn) != members.end()) return false;
  members.push_back(qpn);
  of_qp_[qpn].insert(group);
  if (members.size() == 1) tell(group, true);
  return true;
}

Result<void> MulticastGroups::detach(const Ip& group, uint32_t qpn) {
  auto found = groups_.find(group);
  if (found == groups_.end() || std::erase(found->second, qpn) == 0) {
    return errorf(EINVAL, "queue pair {} is not attached to the group", qpn);
  }
  auto its = of_qp_.find(qpn);
  its->second.erase(group);
  if (its->second.empty()) of_qp_.erase(its);
  end_if_empty(found);
  return {};
}

void MulticastGroups::forget(uint32_t qpn) {
  auto its = of_qp_.extract(qpn);
  if (!its) return;
  for (const Ip& group : its.mapped()) {
    auto found = groups_.find(group);
    std::erase(found->second, qpn);
    end_if_empty(found);
  }
}

void MulticastGroups::end_if_empty(Groups::iterator at) {
  if (!at->second.empty()) return;
  const Ip group = at->first;
  groups_.erase(at);
  tell(group, false);
}

const std::vector<uint32_t>& MulticastGroups::members(const Ip& group) const {
  static const std::vector<uint32_t> none;
  auto found = groups_.find(group);
  return found == groups_.end() ? none : found->second;
}

}  // namespace rocefs
