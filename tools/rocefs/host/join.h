// Moves the calling process onto a host.
#pragma once

#include "core/base/result.h"
#include "tools/rocefs/host/host_session.h"

namespace rocefs {

// Joins the host's namespaces. EPERM unless all belong to the host's user namespace, and if another
// user has made them in the caller's: the caller would lend its rights. The process keeps its
// working directory, by path. In a user namespace other than the caller's, the command gets the
// user that has a number there, and its capabilities there survive execve(2): `ip` and tcpdump work
// without root.
Result<void> join_host(const RunningHost& host);

// Joins a user namespace, with all rights there, as the user and the group that have a number
// there. No change if it is the caller's.
Result<void> join_user(int space);

}  // namespace rocefs
