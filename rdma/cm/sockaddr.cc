#include "rdma/cm/sockaddr.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "rdma/cm/ucma_abi.h"
#include "rdma/wire/bytes.h"

namespace rocefs {
namespace {

using Family = CmAddress::Family;

// struct sockaddr_in, sockaddr_in6 and sockaddr_ib.
constexpr size_t kIpv4Size = 16, kIpv6Size = 28, kIbSize = 48;
constexpr size_t kPortAt = 2, kIpv4At = 4, kIpv6At = 8, kGidAt = 8, kServiceAt = 24;

size_t size_of(Family family) {
  return family == Family::kIpv4 ? kIpv4Size : family == Family::kIpv6 ? kIpv6Size : kIbSize;
}

void put_family(uint16_t family, std::span<uint8_t> out) {
  std::memcpy(out.data(), &family, sizeof family);
}

}  // namespace

Result<CmAddress> address_of(std::span<const uint8_t> octets, size_t size) {
  uint16_t said = 0;
  if (octets.size() < sizeof said) return Error{EINVAL, "an address without a family"};
  std::memcpy(&said, octets.data(), sizeof said);
  CmAddress address;
  if (said == ucma::kFamilyIpv4) {
    address.family = Family::kIpv4;
  } else if (said == ucma::kFamilyIpv6) {
    address.family = Family::kIpv6;
  } else if (said == ucma::kFamilyIb) {
    address.family = Family::kIb;
  } else if (said != 0) {
    return errorf(EAFNOSUPPORT, "addresses of family {}", said);
  } else {
    return address;
  }
  size_t own = size_of(address.family);
  if (own > octets.size() || (size != 0 && size != own)) {
    return errorf(EINVAL, "an address of {} octets", size ? size : octets.size());
  }
  const uint8_t* at = octets.data();
  if (address.family == Family::kIb) {
    std::copy_n(at + kGidAt, address.ip.size(), address.ip.begin());
    address.service_id = wire::load64(at + kServiceAt);
    address.port = static_cast<uint16_t>(address.service_id);
    return address;
  }
  address.port = wire::load16(at + kPortAt);
  if (address.family == Family::kIpv6) {
    std::copy_n(at + kIpv6At, address.ip.size(), address.ip.begin());
  } else {
    address.ip = mapped_ipv4({at[kIpv4At], at[kIpv4At + 1], at[kIpv4At + 2], at[kIpv4At + 3]});
  }
  return address;
}

size_t put_address(const CmAddress& address, std::span<uint8_t> out) {
  switch (address.family) {
    case Family::kNone:
      return 0;
    case Family::kIpv4:
      put_family(ucma::kFamilyIpv4, out);
      wire::store16(&out[kPortAt], address.port);
      if (!address.any()) std::copy_n(address.ip.begin() + 12, 4, out.begin() + kIpv4At);
      return kIpv4Size;
    case Family::kIpv6:
      put_family(ucma::kFamilyIpv6, out);
      wire::store16(&out[kPortAt], address.port);
      std::copy(address.ip.begin(), address.ip.end(), out.begin() + kIpv6At);
      return kIpv6Size;
    case Family::kIb:
      put_gid(address.ip, out);
      wire::store64(&out[kServiceAt], address.service_id);
      wire::store64(&out[kServiceAt + 8], ~uint64_t{0});
      return kIbSize;
  }
  return 0;
}

size_t put_gid(const Ip& gid, std::span<uint8_t> out) {
  put_family(ucma::kFamilyIb, out);
  wire::store16(&out[kPortAt], 0xffff);  // the partition
  std::copy(gid.begin(), gid.end(), out.begin() + kGidAt);
  return kIbSize;
}

}  // namespace rocefs
