// Multicast of datagrams: which queue pairs of a device belong to which group. There is no subnet
// administrator to ask: a group is there while somebody is attached to it.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "core/base/result.h"
#include "rdma/wire/ip.h"

namespace rocefs {

// The queue pair that a multicast packet names.
inline constexpr uint32_t kMulticastQpn = 0xffffff;

// Core thread.
class MulticastGroups {
 public:
  // Again is harmless; whether it was not attached before. EINVAL: the address is no group's.
  Result<bool> attach(const Ip& group, uint32_t qpn);
  // EINVAL when it is not attached.
  Result<void> detach(const Ip& group, uint32_t qpn);
  // From all groups.
  void forget(uint32_t qpn);
  // In the order in which they were attached; empty if there is no such group.
  const std::vector<uint32_t>& members(const Ip& group) const;

 private:
  std::map<Ip, std::vector<uint32_t>> groups_;  // none of them empty
};

}  // namespace rocefs
