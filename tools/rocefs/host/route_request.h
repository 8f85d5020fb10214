// Configuration of interfaces by rtnetlink(7), in the caller's network namespace.
#pragma once

#include <string>

#include "core/base/fd.h"
#include "core/base/result.h"
#include "tools/rocefs/host/interface_line.h"

namespace rocefs {

class RouteClient {
 public:
  static Result<RouteClient> open();

  // Each waits for the kernel's answer.
  Result<void> set_up(const std::string& interface);
  // Sets MAC, MTU and length of the transmit queue, and the interface up.
  Result<void> set_link(const InterfaceLine& line, uint32_t queue_length);
  Result<void> add_address(const std::string& interface, const InterfaceAddress& address);
  // Adds a route to one address that is reached directly.
  Result<void> add_route(const std::string& interface, const InterfaceAddress& to);

  Fd release() { return std::move(socket_); }

 private:
  explicit RouteClient(Fd socket) : socket_(std::move(socket)) {}
  Result<void> ask(std::string& request, const std::string& what);

  Fd socket_;
};

}  // namespace rocefs
