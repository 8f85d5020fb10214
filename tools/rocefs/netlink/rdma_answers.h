// Answers of RDMA netlink (include/uapi/rdma/rdma_netlink.h, drivers/infiniband/core/nldev.c) made
// from the files in /sys: what `rdma`, libibverbs, librdmacm and programs in Go ask.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/rocefs/netlink/rdma_view.h"

namespace rocefs {

// Answers the requests in a datagram, in order. `port`: netlink port of the asker. A request for
// something that the kernel has no handler for gets EINVAL, as from the kernel; one that would
// change a device gets EOPNOTSUPP. The datagram is untrusted.
std::vector<std::string> answer_rdma_netlink(std::string_view datagram, uint32_t port,
                                             const RdmaView& view);

// Answers each of the requests with EOPNOTSUPP.
std::vector<std::string> refuse_rdma_netlink(std::string_view datagram, uint32_t port);

}  // namespace rocefs
