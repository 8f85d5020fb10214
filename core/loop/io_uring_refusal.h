// Why io_uring may not be used here, in words that help: containers forbid it by default.
#pragma once

#include "core/base/result.h"

namespace rocefs {

// What may stand in the way of this process.
struct IoUringBarriers {
  bool filtered = false;  // a seccomp filter is in force
  int disabled = 0;       // kernel.io_uring_disabled: 1 for all without privilege, 2 for all
};
IoUringBarriers io_uring_barriers();

// The errno with which io_uring_enter or io_uring_register is refused on this ring, 0 if neither
// is. A filter may let a ring be made and nothing be done with it.
int refused_on_ring(int ring);

// What a request for datagrams that stays (multishot recvmsg) has ended with at once; 0: it stays.
Result<void> multishot_refusal(int code);

// `code` is what a call of io_uring has failed with.
Error io_uring_refusal(int code, const IoUringBarriers& barriers);

}  // namespace rocefs
