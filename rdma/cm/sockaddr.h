// Socket addresses of IPv4, IPv6 and IB, as octets.
#pragma once

#include <cstddef>
#include <span>

#include "core/base/result.h"
#include "rdma/cm/address.h"

namespace rocefs {

// Family::kNone where it is AF_UNSPEC. EAFNOSUPPORT for another family, EINVAL where `size`, which
// may be none, is not that of the family or more than there is.
Result<CmAddress> address_of(std::span<const uint8_t> octets, size_t size = 0);
// How long it is, 0 for none. `out` is zero, and has room for 48.
size_t put_address(const CmAddress& address, std::span<uint8_t> out);
// A GID as an address of AF_IB.
size_t put_gid(const Ip& gid, std::span<uint8_t> out);

}  // namespace rocefs
