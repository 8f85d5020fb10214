// Socket addresses of IPv4, IPv6 and IB, as octets.
#pragma once

#include <cstddef>
#include <span>

#include "core/base/result.h"
#include "rdma/cm/address.h"

namespace rocefs {

// Family::kNone for AF_UNSPEC. EAFNOSUPPORT for another family; EINVAL for a `size` that is not the
// family's, or larger than `octets`. A `size` of 0 is not checked.
Result<CmAddress> address_of(std::span<const uint8_t> octets, size_t size = 0);
// Returns the length, 0 for no address. `out` is zero, and has 48 octets.
size_t put_address(const CmAddress& address, std::span<uint8_t> out);
// Writes a GID as an address of AF_IB.
size_t put_gid(const Ip& gid, std::span<uint8_t> out);

}  // namespace rocefs
