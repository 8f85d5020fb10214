// Messages of rtnetlink(7) about the interfaces of a host, as far as a NIC is concerned.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "rdma/wire/ip.h"

namespace rocefs {

// Called for each message, in their order.
class RouteListener {
 public:
  virtual void link_is(int index, std::string_view name, bool up, uint32_t mtu) = 0;
  virtual void link_gone(int index) = 0;
  // An address that can be used; not while duplicates of it are looked for.
  virtual void address_is(int index, const Ip& address) = 0;
  virtual void address_gone(int index, const Ip& address) = 0;
  // The answer to a dump request is complete.
  virtual void dump_ended() = 0;

 protected:
  ~RouteListener() = default;
};

// Reads a datagram of the kernel. A malformed part ends it.
void read_route_messages(std::span<const uint8_t> bytes, RouteListener& listener);

enum class RouteDump { kLinks, kAddresses };
// Asks for a dump; false if the socket takes no request now. Waits for nobody.
bool request_dump(int socket, RouteDump what);

}  // namespace rocefs
