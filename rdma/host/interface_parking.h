// InterfaceParking: where the interfaces of a host wait while their device has no driver: another
// network namespace, which nobody enters.
//
// Worker thread: each call waits for the kernel. A host of a user namespace needs the engine to be
// that one's owner.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/process/closer.h"
#include "rdma/host/interface_line.h"

namespace rocefs {

class InterfaceParking {
 public:
  // Sockets of NETLINK_ROUTE that were opened in the host's network namespace, and in the parking.
  InterfaceParking(StrangerFd host, StrangerFd parking)
      : host_(std::move(host)), parking_(std::move(parking)) {}

  int host_socket() const { return host_.get(); }
  int parking_socket() const { return parking_.get(); }

  // Takes an interface out of the host; none of that name is no error.
  Result<void> take(const std::string& interface) const;
  // Puts it back, up, with its first addresses and with routes to the others.
  Result<void> put_back(const InterfaceLine& interface,
                        const std::vector<InterfaceAddress>& routes) const;

 private:
  const StrangerFd host_, parking_;
};

}  // namespace rocefs
