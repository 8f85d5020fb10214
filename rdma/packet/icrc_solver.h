// IcrcSolver: finds the IP ID that a packet was sent with by its ICRC. The ICRC covers the ID
// (annex A17), a UDP socket does not show it, and Soft-RoCE sends one that is not 0. CRC is linear:
// what the ID changes of it tells the ID.
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

  // What stands in an IPv4 header's second word.
  struct IpId {
    uint16_t id;
    bool dont_fragment;
  };
  // `headers` are IPv4's to the last extension header, with ID 0 and DF; `computed` is the ICRC of
  // the packet so, `carried` the one that it has, `behind` the octets from the headers to the ICRC.
  // Nothing if no ID makes it right, in which case the packet is damaged: 15 of 32 bits of the
  // check remain. At most kMaxMtu + kMaxPad octets are behind.
  std::optional<IpId> solve(size_t headers, size_t behind, uint32_t computed,
                            uint32_t carried) const;

  // What a sealed packet's ICRC says of it.
  enum class Verdict {
    kRight,    // its ID is in the headers
    kSolved,   // it is right now: ID and DF are in the headers, header checksum too
    kDamaged,  // no ID makes it right; nothing is changed
  };
  // The packet came without ID and DF: its headers say 0, and DF. `place` is that among those into
  // which its sender's kernel cut a larger one, whose ID is as right as 0.
  Verdict repair(Packet& packet, uint16_t place = 0) const;

 private:
  std::vector<uint32_t> unshift_;  // [n]: x^(-8n) modulo the polynomial, reflected
};

}  // namespace rocefs
