// Messages of rtnetlink(7) about the way to an address: the route, and the neighbour behind it.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "rdma/wire/ip.h"

namespace rocefs {

// Neighbour that packets to an address go to: the address itself, or a gateway.
struct NextHop {
  int interface = 0;  // the kernel's index
  Ip address{};
  bool operator==(const NextHop&) const = default;
};

// The kernel answers with a route, or with an error.
std::string route_request(const Ip& source, const Ip& destination);
// Has the kernel look for the neighbour (ARP, ND) unless it knows it; acknowledged. EPERM without
// CAP_NET_ADMIN.
std::string probe_request(const NextHop& neighbour);
// The kernel answers with the neighbour, or with ENOENT.
std::string neighbour_request(const NextHop& neighbour);

class NeighbourListener {
 public:
  virtual void route_is(uint32_t sequence, const NextHop& hop) = 0;
  // The destination is the machine's own, or a group.
  virtual void route_is_local(uint32_t sequence) = 0;
  // `usable`: packets can be sent to it. Sequence number 0: it has changed.
  virtual void neighbour_is(uint32_t sequence, const NextHop& neighbour, bool usable) = 0;
  // 0: the request is acknowledged; otherwise it has failed with this errno.
  virtual void request_ended(uint32_t sequence, int error) = 0;

 protected:
  ~NeighbourListener() = default;
};

// Reads a datagram of the kernel; other messages are left out.
void read_neighbour_messages(std::span<const uint8_t> bytes, NeighbourListener& listener);

}  // namespace rocefs
