// Mads: management datagrams of the whole fabric: its subnets, their administrators, the MAD layer
// of every port, and the files by which people and programs reach them: mad_sa_cc/, umadN,
// class/infiniband_mad and kernel/debug/rocefs/sa.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/loop/engine.h"
#include "core/loop/poll_loop.h"
#include "core/tree/tree.h"
#include "mad_cc/files/limiter_files.h"
#include "mad_cc/files/sa_files.h"
#include "mad_cc/umad/reader_memory.h"
#include "rdma/network/fabric.h"
#include "rdma/nic/device_extension.h"
#include "tools/rocefs/instance/fabric_subnets.h"

namespace rocefs {

// Control thread, but where said. It outlives the engine's thread and the tree's files.
class Mads final : public DeviceExtension {
 public:
  struct Parts {
    Tree& tree;
    Engine& engine;
    Fabric& fabric;
    PollLoop& control;
    std::string debug;           // the directory of sa/
    std::string_view semantics;  // at first: a word of kMadSemanticsWords
    std::function<void(const std::string&)> warn;
  };

  // Adds sa/ and gives every port its LID, which its files will show. The engine has not started.
  explicit Mads(Parts parts);
  ~Mads() override;

  void bound(Tree& tree, const std::string& directory, Device& device) override;
  void unbound(Device& device) override;

  // For `reset`: programs have lost their device: what is open of umadN answers ENODEV from now on.
  void drop_clients();
  // Core thread: nothing is on its way, ports and administrators have forgotten all.
  void reset();
  // After that.
  void finish_reset();

 private:
  struct SubnetMads;
  struct PortMads;
  void add_umad(PortMads& port);
  void remove_umad(const PortMads& port);

  const Parts parts_;
  FabricSubnets subnets_;
  std::vector<std::unique_ptr<SubnetMads>> subnet_mads_;  // as subnets_.all()
  std::shared_ptr<ReaderMemory> readers_;
  std::vector<std::unique_ptr<PortMads>> ports_;  // device by device
  std::unique_ptr<SaFiles> sa_;
  std::unique_ptr<LimiterFiles> limits_;
};

}  // namespace rocefs
