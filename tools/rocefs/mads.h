// Mads: management datagrams of the whole fabric: subnets and their administrators, the MAD layer of
// every port, and the files by which people and programs reach them: mad_sa_cc/, umadN,
// class/infiniband_mad, kernel/debug/rocefs/sa.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/engine.h"
#include "core/tree.h"
#include "mad_cc/limiter_files.h"
#include "mad_cc/mad_network.h"
#include "mad_cc/mad_port.h"
#include "mad_cc/sa_files.h"
#include "rdma/device_extension.h"
#include "rdma/fabric.h"
#include "tools/rocefs/fabric_subnets.h"

namespace rocefs {

// Control thread, but where said. It outlives the engine's thread and the tree's files.
class Mads final : public DeviceExtension {
 public:
  struct Parts {
    Tree& tree;
    Engine& engine;
    Fabric& fabric;
    MadSemantics semantics = MadSemantics::kDoc;  // at first
    std::function<void(const std::string&)> warn;
  };

  // Gives every port its LID: before its files are made.
  explicit Mads(Parts parts);
  ~Mads() override;

  // kernel/debug/rocefs/sa, below `debug`.
  void add_files(const std::string& debug);
  // Core thread: nothing is on its way, the administrators have forgotten all, chance begins anew.
  void reset();

  void bound(Tree& tree, const std::string& directory, Device& device) override;
  void unbound(Device& device) override;

 private:
  struct PortMads;
  void add_umad(const std::string& directory, Device& device, PortMads& port);

  const Parts parts_;
  FabricSubnets subnets_;
  std::vector<std::unique_ptr<MadNetwork>> networks_;
  std::vector<std::unique_ptr<PortMads>> ports_;  // device by device
};

}  // namespace rocefs
