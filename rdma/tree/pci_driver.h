// PciDriver: bus/pci/drivers/mango_core, which makes devices of PCI functions. All are bound at
// first; `unbind` and `bind` change them one by one, as a reload of a driver does.
#pragma once

#include <bitset>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/loop/engine.h"
#include "core/tree/tree.h"
#include "rdma/network/fabric.h"
#include "rdma/nic/device_extension.h"
#include "rdma/tree/device_files.h"
#include "rdma/tree/files.h"

namespace rocefs {

// Control thread.
class PciDriver {
 public:
  // Adds its own files and those of every device; the extensions add to those in their order. All
  // arguments outlive this object, which outlives the tree's server.
  PciDriver(Tree& tree, Fabric& fabric, Engine& engine, const LinkKnobs& knobs,
            std::vector<DeviceExtension*> extensions = {});
  ~PciDriver();
  // Binds every unbound device; answers when all are bound.
  void bind_all(Answer<void> answer);

  // Functions without the driver, by address in order, kept for a takeover.
  using Unbound = std::bitset<kMaxDevices>;
  const Unbound& unbound() const { return unbound_; }
  // Before the engine starts and the tree is served.
  void restore(const Unbound& unbound);

 private:
  // `text`: a function's address. ENODEV for functions that this driver cannot drive; as in
  // drivers/base/bus.c, ENODEV to unbind an unbound one, EBUSY to bind a bound one.
  void store(std::string_view text, bool bind, Answer<void> answer);
  void change(const std::string& address, bool bind, Answer<void> answer);
  void next();
  void note(const DeviceFiles& files, bool bound);
  // Remember cfr/enable of a device that PCC has the windows of, before it leaves, and set it again
  // after it is back: the end of PCC returns it.
  void keep_cfr(DeviceFiles& files);
  void return_cfr(DeviceFiles& files, Task done);
  void bind(DeviceFiles& files);
  void unbind(DeviceFiles& files);
  void when_settled(size_t first, Task done);

  Tree& tree_;
  Engine& engine_;
  const std::vector<DeviceExtension*> extensions_;
  std::map<std::string, std::unique_ptr<DeviceFiles>, std::less<>> functions_;
  // One change at a time, in the order of the stores.
  std::deque<Task> waiting_;
  bool changing_ = false;
  std::map<const DeviceFiles*, KnobValue> cfr_;  // of unbound devices
  Unbound unbound_;                              // without changes that are not answered yet
};

}  // namespace rocefs
