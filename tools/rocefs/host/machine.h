// Machine: one host as its maker builds it: namespaces, interfaces, /etc/hosts, /sys and /dev.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "tools/rocefs/host/host_session.h"
#include "tools/rocefs/host/interface_line.h"

namespace rocefs {

// Makes the host in the calling process, which must have CAP_SYS_ADMIN in its user namespace and
// ends afterwards, and hands it to the engine.
Result<void> make_machine(const std::string& mount_point, const HostDescription& host,
                          const std::vector<HostDescription>& all, HostSession& session);

}  // namespace rocefs
