#include "rdma/host/interface_parking.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>

#include <cerrno>
#include <cstring>

#include "core/base/fd.h"
#include "rdma/host/route_client.h"

namespace rocefs {
namespace {

Result<void> move_between(int from, int to, const std::string& interface) {
  Fd network(::ioctl(to, SIOCGSKNS));
  if (!network) return errorf(errno, "{}: its namespace: {}", interface, std::strerror(errno));
  Result<void> moved = RouteClient(from).move(interface, network.get());
  if (!moved && moved.error().code == ENODEV) return {};
  return moved;
}

}  // namespace

Result<void> InterfaceParking::take(const std::string& interface) const {
  return move_between(host_.get(), parking_.get(), interface);
}

Result<void> InterfaceParking::put_back(const InterfaceLine& interface,
                                        const std::vector<InterfaceAddress>& routes) const {
  Result<void> done = move_between(parking_.get(), host_.get(), interface.name);
  RouteClient route(host_.get());
  if (done) done = route.set_link(interface);
  for (const InterfaceAddress& address : interface.addresses) {
    if (done) done = route.add_address(interface.name, address);
  }
  for (const InterfaceAddress& to : routes) {
    if (done) done = route.add_route(interface.name, to);
  }
  return done;
}

}  // namespace rocefs
