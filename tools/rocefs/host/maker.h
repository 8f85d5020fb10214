// Makes the hosts of a mount. They live on in the engine's descriptors when the maker has ended.
#pragma once

#include <string>

#include "core/base/result.h"
#include "tools/rocefs/host/host_session.h"

namespace rocefs {

// Makes all hosts, the wanted one first, in children. The caller has one thread. Without root's
// rights hosts share a user namespace; EPERM where the machine forbids one.
Result<void> make_hosts(const std::string& mount_point, const std::string& wanted,
                        HostSession& session);

// Checks that the caller has rights in a network namespace.
Result<void> check_network(int network);

// Makes one host in a network namespace that is there already, and has been checked: it costs the
// host its own.
Result<void> make_host_in(const std::string& mount_point, const std::string& name, int network,
                          HostSession& session);

// ENOENT, with the names of all hosts, if there is none of this name.
Result<void> check_host(const std::string& mount_point, const std::string& name);

}  // namespace rocefs
