// Answers of RDMA netlink (include/uapi/rdma/rdma_netlink.h, drivers/infiniband/core/nldev.c) made
// from the files in /sys: what `rdma`, libibverbs, librdmacm and programs in Go ask.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/rocefs/netlink/rdma_view.h"

namespace rocefs {

// Takes an answer; false if there is no room for it, and none is wanted any more.
using TakeAnswer = std::function<bool(std::string)>;

// Answers the requests in a datagram, in order, each message as it is made. `port`: netlink port of
// the asker. A request for something that the kernel has no handler for gets EINVAL, as from the
// kernel; one that would change a device gets EOPNOTSUPP. The datagram is untrusted. Returns 0, or
// ENOBUFS: for more than 64 messages in the datagram, of which none is answered, or where `take`
// had no room.
int answer_rdma_netlink(std::string_view datagram, uint32_t port, const RdmaView& view,
                        const TakeAnswer& take);

// Answers each of the requests, 64 at most, with EOPNOTSUPP.
std::vector<std::string> refuse_rdma_netlink(std::string_view datagram, uint32_t port);

}  // namespace rocefs
