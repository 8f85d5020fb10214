// Explains why io_uring may not be used: containers forbid it by default.
#pragma once

#include "core/base/result.h"

namespace rocefs {

// Restrictions of this process.
struct IoUringBarriers {
  bool filtered = false;  // a seccomp filter is in force
  int disabled = 0;       // kernel.io_uring_disabled: 1 for all without privilege, 2 for all
};
IoUringBarriers io_uring_barriers();

// The errno of io_uring_enter or io_uring_register on this ring, 0 if both are permitted. A seccomp
// filter may permit io_uring_setup alone.
int refused_on_ring(int ring);

// `code`: the result of a multishot recvmsg that ended at once; 0: it is pending.
Result<void> multishot_refusal(int code);

// `code`: the errno of a failed io_uring call.
Error io_uring_refusal(int code, const IoUringBarriers& barriers);

}  // namespace rocefs
