// HostSession: connection to a mount's engine by which hosts are made and joined
// (rdma/uapi/host.h).
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <array>
#include <optional>
#include <string>

#include "core/base/fd.h"
#include "core/base/result.h"
#include "rdma/uapi/host.h"

namespace rocefs {

// Descriptors by enum rocefs_host_namespace.
using HostNamespaces = std::array<Fd, ROCEFS_HOST_NAMESPACES>;

struct RunningHost {
  HostNamespaces namespaces;
  bool of_another = false;  // made by another user, or there is only such a user's word for it
};

class HostSession {
 public:
  // EPERM if the engine is neither root's nor the caller's, or does not let the caller use hosts;
  // EOPNOTSUPP under the virtual clock.
  static Result<HostSession> open(const std::string& mount_point);

  // User and group of the engine.
  const ucred& engine() const { return engine_; }
  // The host once it runs; nullopt: the caller is to make the hosts. Waits while another program
  // makes them. ENOENT if there is no such host.
  // `how`: 0, or ROCEFS_HOST_AS_IT_IS.
  Result<std::optional<RunningHost>> enter(const std::string& host, uint32_t how = 0);
  // An operation of the maker.
  Result<void> give(rocefs_host_op op, const std::string& host, uint32_t number, int descriptor);

 private:
  HostSession() = default;
  bool may_lie() const;
  Result<rocefs_host_answer> exchange(rocefs_host_op op, const std::string& host, uint32_t number,
                                      int descriptor, HostNamespaces& received);

  Fd socket_;
  ucred engine_{};
};

}  // namespace rocefs
