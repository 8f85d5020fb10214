// IcrcSolver: finds the IP ID with which a packet was sent by its ICRC. The ICRC covers the ID
// (IBTA annex A17), a UDP socket does not show it, and Soft-RoCE sends one that is not 0. CRC is
// linear: the difference that the ID makes in the ICRC gives the ID.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "rdma/packet/packet.h"

namespace rocefs {

class IcrcSolver {
 public:
  IcrcSolver();

  // Second word of an IPv4 header.
  struct IpId {
    uint16_t id;
    bool dont_fragment;
  };
  // Solves for the second word. `headers` reach from IPv4 to the last extension header, with ID 0
  // and DF; with another ID, the result has the bits in which the IDs differ. `computed` is the
  // ICRC of that packet, `carried` the one on the wire, `behind` the octets from the headers to the
  // ICRC, at most kMaxMtu + kMaxPad. Nullopt if no ID explains the difference: the packet is
  // damaged. 15 of the 32 bits still check.
  std::optional<IpId> solve(size_t headers, size_t behind, uint32_t computed,
                            uint32_t carried) const;

  // Verdict on a sealed packet by its ICRC.
  enum class Verdict {
    kRight,    // ICRC is right for the headers as they are
    kSolved,   // ICRC is right with the ID and DF that are in the headers now, header checksum too
    kDamaged,  // no ID makes the ICRC right; nothing is changed
  };
  // Repairs a packet that came without ID and DF, and is not intact: its headers say DF and the ID
  // that it is likely to have, `computed` is its ICRC with these.
  Verdict repair(Packet& packet, uint32_t computed) const;

 private:
  std::vector<uint32_t> unshift_;  // [n]: x^(-8n) modulo the polynomial, reflected
};

}  // namespace rocefs
