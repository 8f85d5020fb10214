// Answers RDMA netlink for a command and its children, static programs and Go ones too. libibverbs
// asks it first; a kernel with RDMA would answer with its own devices.
#pragma once

#include "core/base/result.h"

namespace rocefs {

// From now on sockets of NETLINK_RDMA of the calling process and its children are served by a
// process of its own, which ends after them. Its answers come from the files that the asking
// process sees in /sys. Where another listener of seccomp(2) is in the way, the sockets fail with
// EPROTONOSUPPORT. The caller has one thread, and CAP_SYS_ADMIN in its user namespace: then
// no_new_privs stays off and sudo works.
Result<void> answer_rdma_netlink();

}  // namespace rocefs
