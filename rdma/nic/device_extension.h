// DeviceExtension: files that other rooms add to those of a device while its driver is bound.
#pragma once

#include <string>

#include "core/base/task.h"
#include "core/tree/tree.h"

namespace rocefs {

class Device;

// Control thread.
class DeviceExtension {
 public:
  virtual ~DeviceExtension() = default;
  // `directory` is the RDMA device's, and has all other files already.
  virtual void bound(Tree& tree, const std::string& directory, Device& device) = 0;
  // The device has left on the core thread; its directory is removed next, with all that is in it.
  virtual void unbound(Device& device) = 0;
  // Calls `done` when all that was begun by bound() and unbound() has ended.
  virtual void when_settled(Task done) { done(); }
};

}  // namespace rocefs
