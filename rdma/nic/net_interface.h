// NetInterface: the interface of a host's kernel that is plugged into a port, as the port sees it.
// Its frames share the port's cable with the NIC's packets.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rdma/packet/packet.h"

namespace rocefs {

// Core thread.
class NetInterface {
 public:
  // Priorities with frames to transmit, a bit each. The interface kicks the port when it has some.
  virtual uint8_t waiting() const = 0;
  // Next frame of a priority that waits.
  virtual PacketPtr pull(size_t priority) = 0;
  // Takes a frame from the cable.
  virtual void receive(PacketPtr&& frame) = 0;
  // The interface has got or lost its carrier (Port::interface_up()).
  virtual void carrier_changed(bool carrier) = 0;

 protected:
  ~NetInterface() = default;
};

}  // namespace rocefs
