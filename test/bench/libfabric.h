// libfabric's emulation of RDMA over UDP datagrams (`udp;ofi_rxd`), for comparison.
#pragma once

#include <cstddef>

#include "test/bench/two_networks.h"

namespace rocefs::bench {

// Nanoseconds per fi_write of `count` from the first network to the second, at most 16 at a time; 0
// if libfabric is not installed.
double libfabric_write_ns(const TwoNetworks& networks, size_t length, int count);

}  // namespace rocefs::bench
