// UplinkedPort: a port whose addresses may be the machine's, as the uplink that serves it sees it:
// what the machine's network carries for the port, the port is told.
#pragma once

#include <cstdint>
#include <string>

namespace rocefs {

class UplinkedPort {
 public:
  virtual std::string name() const = 0;  // DEVICE or DEVICE/2
  // Octets of payload: what its topology gives it.
  virtual uint32_t largest_mtu() const = 0;
  // Core thread, or before the engine starts. Octets of payload, at most largest_mtu().
  virtual void set_mtu(uint32_t mtu) = 0;
  // Whether the machine's network has what the port needs of it. Without it its link is down.
  // Core thread, or before the engine starts.
  virtual void set_carrier(bool carrier) = 0;
  virtual bool carrier() const = 0;  // any thread
  // Control thread, after either has changed.
  virtual void network_changed() = 0;

 protected:
  ~UplinkedPort() = default;
};

}  // namespace rocefs
