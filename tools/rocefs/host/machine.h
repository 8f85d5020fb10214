// Machine: one host as its maker builds it: namespaces, interfaces, /etc/hosts, /sys and /dev.
#pragma once

#include <string>
#include <vector>

#include "core/base/fd.h"
#include "core/base/result.h"
#include "tools/rocefs/host/description.h"
#include "tools/rocefs/host/host_session.h"

namespace rocefs {

// Moves into the network namespace, and into the user namespace that it belongs to if need be: who
// owns that has all rights there.
Result<void> join_network(int network);

// A route socket in a new network namespace, in which interfaces wait while their device has no
// driver. The caller is in that namespace afterwards.
Result<Fd> open_parking();

// Makes the host in the calling process, which must have CAP_SYS_ADMIN in its user namespace and
// ends afterwards, and hands it to the engine. `network`: a network namespace to take, with a
// parking of its own; -1: a new one, with `parking`.
Result<void> make_machine(const std::string& mount_point, const HostDescription& host,
                          const std::vector<HostDescription>& all, int network, int parking,
                          HostSession& session);

}  // namespace rocefs
