// DeviceFiles: the files of one device: its PCI function always, its RDMA device and its interfaces
// while the driver is bound.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/loop/engine.h"
#include "core/tree/tree.h"
#include "rdma/tree/files.h"
#include "rdma/tree/port_files.h"

namespace rocefs {

class Device;

inline constexpr std::string_view kDriverDirectory = "bus/pci/drivers/mango_core";

// Control thread.
class DeviceFiles {
 public:
  // Adds the function's files. All arguments outlive this object, which outlives the tree's server.
  // `index`: the device's number among all, from 0, as in uverbs<index>.
  DeviceFiles(Tree& tree, Device& device, size_t index, Engine& engine, const LinkKnobs& knobs);

  Device& device() { return device_; }
  bool bound() const { return bound_; }
  // Directory of the RDMA device, while bound.
  std::string directory() const;
  // Only while unbound. Every knob of the device gets its default.
  void bind();
  // Only while bound. Open files answer ENODEV from now on.
  void unbind();

 private:
  const std::shared_ptr<PortLink>& link_of(size_t index);
  void fixed(const std::string& path, std::string text, std::string_view doc);
  void add_function();
  void add_identity();
  void add_uverbs();
  void add_port(size_t index);
  void add_interface(size_t index);
  std::string uevent() const;

  Tree& tree_;
  Device& device_;
  Engine& engine_;
  const LinkKnobs knobs_;
  std::vector<std::shared_ptr<PortLink>> links_;  // one per port; null until somebody looks
  const std::string function_;                    // devices/pci…/<address>
  const std::string uverbs_;                      // uverbs<index>
  bool bound_ = false;
};

}  // namespace rocefs
