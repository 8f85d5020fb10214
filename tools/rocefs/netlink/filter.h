// The seccomp filters by which RDMA netlink is answered, or refused.
#pragma once

#include <linux/filter.h>

#include <vector>

namespace rocefs {

// Descriptors of answered sockets: high numbers, so that calls on others cost nothing, but below
// the usual limit of open files. iproute2 keeps a socket open for each device.
inline constexpr int kLowestSocket = 512, kHighestSocket = 1023;

// socket(AF_NETLINK, …, NETLINK_RDMA) fails with EPROTONOSUPPORT, for 64-bit and 32-bit programs of
// x86 and ARM. socketcall(2), used by 32-bit x86 programs older than Linux 4.3, passes: a filter
// does not see its arguments.
std::vector<sock_filter> refusing_filter();

// The call, and those calls on these descriptors that a netlink socket answers in another way than
// a unix socket, are told to the filter's listener; calls that send too, for only the listener
// knows who asks. Programs of other ABIs than this one's are refused.
std::vector<sock_filter> notifying_filter();

}  // namespace rocefs
