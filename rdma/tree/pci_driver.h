// PciDriver: bus/pci/drivers/mango_core, which makes devices of PCI functions. It is bound to all
// at first; `unbind` and `bind` take and give them one by one, as a reload of a driver does.
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
  // Adds its own files and those of every device, which the extensions add to in their order. All
  // outlive it; it outlives whoever serves the tree.
  PciDriver(Tree& tree, Fabric& fabric, Engine& engine, const LinkKnobs& knobs,
            std::vector<DeviceExtension*> extensions = {});
  ~PciDriver();
  // Binds every device that is not; answers when all are.
  void bind_all(Answer<void> answer);

  // Which functions, by address in order, are without the driver: what a successor begins with.
  static constexpr size_t kMaxFunctions = 256;
  using Unbound = std::bitset<kMaxFunctions>;
  const Unbound& unbound() const { return unbound_; }
  // Before the engine starts and the tree is served.
  void restore(const Unbound& unbound);

 private:
  // `text` is a function's address, as echoed. ENODEV for none that this driver could drive, and
  // as drivers/base/bus.c has it: ENODEV to unbind what is not bound, EBUSY to bind what is.
  void store(std::string_view text, bool bind, Answer<void> answer);
  void change(const std::string& address, bool bind, Answer<void> answer);
  void next();
  void note(const DeviceFiles& files, bool bound);
  void bind(DeviceFiles& files);
  void unbind(DeviceFiles& files);

  Tree& tree_;
  Engine& engine_;
  const std::vector<DeviceExtension*> extensions_;
  std::map<std::string, std::unique_ptr<DeviceFiles>, std::less<>> functions_;
  // One change at a time, in the order of the stores.
  std::deque<Task> waiting_;
  bool changing_ = false;
  Unbound unbound_;  // as it will be told: a store that is not answered yet is not in it
};

}  // namespace rocefs
