#include "rdma/packet/icrc_solver.h"

#include "rdma/wire/bytes.h"
#include "rdma/wire/icrc.h"

namespace rocefs {
namespace {

// Polynomials over GF(2) modulo that of CRC-32, reflected: the top bit is x^0.
constexpr uint32_t kPolynomial = 0xedb88320;
constexpr uint32_t kOne = 0x80000000;

constexpr uint32_t times_x(uint32_t value) {
  return (value >> 1) ^ (value & 1 ? kPolynomial : 0);
}
constexpr uint32_t divided_by_x(uint32_t value) {
  return value & kOne ? (value ^ kPolynomial) << 1 | 1 : value << 1;
}

uint32_t product(uint32_t a, uint32_t b) {
  uint32_t sum = 0;
  for (; a != 0; a <<= 1, b = times_x(b)) sum ^= a & kOne ? b : 0;
  return sum;
}

constexpr size_t kIdAt = 4;  // in an IPv4 header; DF and the fragment offset follow
// Octets from the ID to the end of the longest packet.
constexpr size_t kMaxSpan = wire::kMaxHeaderLen - kIdAt + kMaxMtu + kMaxPad;

}  // namespace

IcrcSolver::IcrcSolver() : unshift_(kMaxSpan + 1) {
  uint32_t value = kOne;
  for (uint32_t& entry : unshift_) {
    entry = value;
    for (int bit = 0; bit < 8; ++bit) value = divided_by_x(value);
  }
}

// Shifts the difference of the two CRCs, which is that of the word with ID and flags, back through
// all octets that follow. The first octet of the result is lowest.
std::optional<IcrcSolver::IpId> IcrcSolver::solve(size_t headers, size_t behind, uint32_t computed,
                                                  uint32_t carried) const {
  uint32_t word = product(computed ^ carried, unshift_[headers - kIdAt + behind]);
  constexpr uint32_t kFragmentable =
      wire::kDontFragment >> 8;  // difference in the octet of DF, if sent without DF
  uint32_t flags = word >> 16;
  if (flags != 0 && flags != kFragmentable) return std::nullopt;
  return IpId{static_cast<uint16_t>((word & 0xff) << 8 | (word >> 8 & 0xff)), flags == 0};
}

IcrcSolver::Verdict IcrcSolver::repair(Packet& packet, uint32_t computed) const {
  bool ipv6 = packet.header[0] >> 4 == 6;
  if (ipv6) return Verdict::kDamaged;
  size_t behind = packet.sealed_length() - wire::kIcrcLen;
  uint32_t carried = wire::load_icrc(std::span(packet.frame->bytes).subspan(behind));
  std::optional<IpId> found = solve(packet.header_len, behind, computed, carried);
  if (!found) return Verdict::kDamaged;
  uint8_t* header = packet.header.data();
  const auto id = static_cast<uint16_t>(wire::load16(header + kIdAt) ^ found->id);
  wire::store16(header + kIdAt, id);
  wire::store16(header + kIdAt + 2, found->dont_fragment ? wire::kDontFragment : 0);
  wire::set_ipv4_checksum(packet.header);
  packet.intact = true;
  return id == 0 && found->dont_fragment ? Verdict::kRight : Verdict::kSolved;
}

}  // namespace rocefs
