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

}  // namespace rocefs
