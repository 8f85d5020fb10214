// DeviceExtension: what others add to the files of a device while its driver is bound.
#pragma once

#include <string>

#include "core/tree/tree.h"

namespace rocefs {

class Device;

// Control thread.
class DeviceExtension {
 public:
  virtual ~DeviceExtension() = default;
  // `directory` is the RDMA device's own, and has all other files by now.
  virtual void bound(Tree& tree, const std::string& directory, Device& device) = 0;
  // The device has left on the core's thread, and its directory goes next, with all that is in it.
  virtual void unbound(Device& device) = 0;
};

}  // namespace rocefs
