// UplinkedPort: a port whose addresses may be the machine's, as its uplink sees it: the uplink
// reports what the machine's network carries for the port.
#pragma once

#include <cstdint>
#include <string>

namespace rocefs {

class UplinkedPort {
 public:
  virtual std::string name() const = 0;  // DEVICE or DEVICE/2
  // Octets of payload: the MTU of the topology.
  virtual uint32_t largest_mtu() const = 0;
  // Core thread, or before the engine starts. Octets of payload, at most largest_mtu().
  virtual void set_mtu(uint32_t mtu) = 0;
  // Whether the machine's network works for the port. Without carrier the port's link is down. Core
  // thread, or before the engine starts.
  virtual void set_carrier(bool carrier) = 0;
  // Any thread. False also where something else than the uplink takes the carrier away.
  virtual bool carrier() const = 0;
  // Control thread, after either has changed.
  virtual void network_changed() = 0;

 protected:
  ~UplinkedPort() = default;
};

}  // namespace rocefs
