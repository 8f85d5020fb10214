// Network interfaces of the machine, as an uplink needs them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "core/base/fd.h"
#include "core/loop/poll_loop.h"
#include "rdma/wire/ip.h"

namespace rocefs {

struct Interface {
  std::string name;
  unsigned index = 0;
  uint32_t mtu = 0;  // octets of an IP packet
  bool up = false;
  bool carrier = false;
};
// The interface with this address, or with its network where the kernel accepts all of it
// (127.0.0.0/8). Empty if there is none.
std::optional<Interface> interface_of(const Ip& address);

// Whether the address is the broadcast address of one of the machine's networks.
bool is_broadcast(const Ip& address);

// Why the machine can neither send from the address nor receive there now; empty if it can. Routes
// may give it addresses that no interface has.
std::string trouble_with(const Ip& address);

// Watches interfaces and addresses (rtnetlink(7)); `changed` also runs for irrelevant changes.
class InterfaceWatch {
 public:
  // Control thread. The loop outlives it.
  InterfaceWatch(PollLoop& loop, std::function<void()> changed);
  ~InterfaceWatch();
  InterfaceWatch(const InterfaceWatch&) = delete;
  InterfaceWatch& operator=(const InterfaceWatch&) = delete;

  bool works() const { return static_cast<bool>(socket_); }

 private:
  PollLoop& loop_;
  Fd socket_;
};

// The largest RoCE MTU whose packets fit, with the longest headers; 0 if none does. As in Linux for
// Soft-RoCE: 1500 carries 1024, 4200 carries 4096.
uint32_t roce_mtu(uint32_t ip_mtu);

}  // namespace rocefs
