// RouteClient: configures interfaces by rtnetlink(7), in the network namespace where its socket was
// opened. Each call waits for the kernel's answer.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/fd.h"
#include "core/base/result.h"
#include "rdma/host/interface_line.h"

namespace rocefs {

// A socket for RouteClient in the caller's network namespace.
Result<Fd> open_route_socket();

class RouteClient {
 public:
  // The socket is its user's, and nobody else's reads from it meanwhile.
  explicit RouteClient(int socket) : socket_(socket) {}

  Result<void> set_up(const std::string& interface);
  // Sets MAC, MTU and length of the transmit queue, and the interface up.
  Result<void> set_link(const InterfaceLine& line);
  Result<void> add_address(const std::string& interface, const InterfaceAddress& address);
  // Adds a route to a network that is reached directly.
  Result<void> add_route(const std::string& interface, const InterfaceAddress& to);
  // Moves the interface, with its name, to another network namespace. It is down there, and has
  // lost its addresses. ENODEV if there is none.
  Result<void> move(const std::string& interface, int network);

 private:
  Result<int> index_of(const std::string& interface);
  Result<void> ask(std::string request, const std::string& about);
  // Sends a request, and receives the kernel's answer to it.
  Result<std::string> exchange(std::string request, const std::string& about);

  const int socket_;
  uint32_t sequence_ = 0;
};

}  // namespace rocefs
