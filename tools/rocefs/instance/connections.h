// Connections: the communication managers of all devices with their files: those that librdmacm
// looks for, and the counters of ib_cm in ports/N/cm_*.
#pragma once

#include <optional>
#include <string>

#include "core/loop/engine.h"
#include "core/tree/tree.h"
#include "rdma/cm/cma.h"
#include "rdma/cm/ucma.h"
#include "rdma/host/hosts.h"
#include "rdma/nic/device_extension.h"
#include "rdma/rtnetlink/own_neighbours.h"

namespace rocefs {

// Control thread. Outlives the engine's thread and the tree's files.
class Connections final : public DeviceExtension {
 public:
  // Adds the files that belong to no device, `debug`/cm_ids among them. Before the engine starts.
  // `salt`: see CmManager.
  Connections(Tree& tree, Engine& engine, Fabric& fabric, const std::string& debug, uint64_t salt);

  Ucma& ucma() { return ucma_; }
  // Asks the kernel for neighbours from now on: its own, and those of hosts. Before the engine
  // starts.
  void search_neighbours(PollLoop& loop, const Hosts& hosts);
  void bound(Tree& tree, const std::string& directory, Device& device) override;
  // Core thread.
  void clear_counters();
  // Empty: the files are removed with the device's directory.
  void unbound(Device&) override {}

 private:
  Engine& engine_;
  Fabric& fabric_;
  Cma cma_;
  Ucma ucma_;
  std::optional<OwnNeighbours> own_;
};

}  // namespace rocefs
