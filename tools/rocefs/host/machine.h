// Machine: one host as its maker builds it: namespaces, interfaces, /etc/hosts, /sys and /dev.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "tools/rocefs/host/host_session.h"
#include "tools/rocefs/host/interface_line.h"

namespace rocefs {

// Moves into the network namespace, and into the user namespace that it belongs to if need be: who
// owns that has all rights there.
Result<void> join_network(int network);

// Makes the host in the calling process, which must have CAP_SYS_ADMIN in its user namespace and
// ends afterwards, and hands it to the engine. `network`: a network namespace to take; -1: a new
// one.
Result<void> make_machine(const std::string& mount_point, const HostDescription& host,
                          const std::vector<HostDescription>& all, int network,
                          HostSession& session);

}  // namespace rocefs
