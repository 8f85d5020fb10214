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
  if (members.size() == 1) tell(group, true);
  return true;
}

Result<void> MulticastGroups::detach(const Ip& group, uint32_t qpn) {
  auto found = groups_.find(group);
  if (found == groups_.end() || std::erase(found->second, qpn) == 0) {
    return errorf(EINVAL, "queue pair {} is not attached to the group", qpn);
  }
  if (!found->second.empty()) return {};
  groups_.erase(found);
  tell(group, false);
  return {};
}

void MulticastGroups::forget(uint32_t qpn) {
  for (auto at = groups_.begin(); at != groups_.end();) {
    const Ip group = at->first;
    std::erase(at->second, qpn);
    bool ends = at->second.empty();
    at = ends ? groups_.erase(at) : std::next(at);
    if (ends) tell(group, false);
  }
}

const std::vector<uint32_t>& MulticastGroups::members(const Ip& group) const {
  static const std::vector<uint32_t> none;
  auto found = groups_.find(group);
  return found == groups_.end() ? none : found->second;
}

}  // namespace rocefs
