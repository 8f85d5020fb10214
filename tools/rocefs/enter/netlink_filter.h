// Keeps RDMA netlink away from a process and its children: libibverbs asks it first, and a kernel
// that has RDMA would answer with its own devices, or with none, and never look at the tree.
#pragma once

#include "core/base/result.h"

namespace rocefs {

// From now on socket(AF_NETLINK, …, NETLINK_RDMA) fails with EPROTONOSUPPORT in the caller and in
// all that it starts, for 64-bit and 32-bit programs of x86 and ARM; every other call is untouched.
// The caller needs CAP_SYS_ADMIN in its user namespace, so that no_new_privs stays off and sudo
// works. socketcall(2), of 32-bit x86 programs older than Linux 4.3, hides its arguments: it is let
// pass.
Result<void> refuse_rdma_netlink();

}  // namespace rocefs
