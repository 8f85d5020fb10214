// Hides RDMA netlink from a process and its children. libibverbs asks it first: a kernel with RDMA
// would answer with its own devices, or with none, and libibverbs would not look into /sys.
#pragma once

#include "core/base/result.h"

namespace rocefs {

// Installs a seccomp filter: socket(AF_NETLINK, …, NETLINK_RDMA) fails with EPROTONOSUPPORT in the
// caller and its children, for 64-bit and 32-bit programs of x86 and ARM. Other calls are
// untouched. The caller needs CAP_SYS_ADMIN in its user namespace: then no_new_privs stays off and
// sudo works. socketcall(2), used by 32-bit x86 programs older than Linux 4.3, passes: a filter
// does not see its arguments.
Result<void> refuse_rdma_netlink();

}  // namespace rocefs
