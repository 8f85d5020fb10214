// The machine's network interfaces, as far as an uplink asks.
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
  uint32_t mtu = 0;  // of IP packets
  bool up = false;
  bool carrier = false;
};
// The one that has this address, or the whole network of it where the kernel takes it so
// (127.0.0.0/8). Nothing if none has.
std::optional<Interface> interface_of(const Ip& address);

// Whether it is the broadcast address of a network of the machine's.
bool is_broadcast(const Ip& address);

// Why the machine can neither send from the address nor receive there at present; empty if it can.
// It may have addresses that no interface has, by its routes.
std::string trouble_with(const Ip& address);

// Tells of what becomes of interfaces and addresses (rtnetlink(7)); also when nothing has that
// matters.
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

// The largest RoCE MTU whose packets fit, with the longest headers; 0 if none does. As Linux has it
// for Soft-RoCE: 1500 carries 1024, 4200 carries 4096.
uint32_t roce_mtu(uint32_t ip_mtu);

}  // namespace rocefs
