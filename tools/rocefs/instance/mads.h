// Mads: management datagrams of the whole fabric: subnets, their administrators, the MAD layer of
// every port, and their files: mad_sa_cc/, umadN, issmN, class/infiniband_mad and
// kernel/debug/rocefs/sa.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
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

// Control thread, except reset(). Outlives the engine's thread and the tree's files.
class Mads final : public DeviceExtension {
 public:
  struct Parts {
    Tree& tree;
    Engine& engine;
    Fabric& fabric;
    PollLoop& control;
    FabricSubnet::SetLink set_link;  // core thread
    std::string debug;               // the directory of sa/
    std::string_view semantics;      // initial: a word of kMadSemanticsWords
    std::function<void(const std::string&)> warn;
  };

  // Adds sa/ and gives every port its LID, which its files will show. Before the engine starts.
  explicit Mads(Parts parts);
  ~Mads() override;

  void bound(Tree& tree, const std::string& directory, Device& device) override;
  void unbound(Device& device) override;

  // First step of a reset: open umadN and issmN files answer ENODEV from now on.
  void drop_clients();
  // Second step, core thread: drops MADs in flight and the state of ports and administrators.
  void reset();
  // Third step, core thread, when knobs have their values.
  void clear_counters();
  // Fourth step.
  void finish_reset();

 private:
  struct SubnetMads;
  struct PortMads;
  using MakeFile = std::function<std::shared_ptr<File>()>;
  // Character devices of a port, by name: umadN and issmN.
  std::vector<std::pair<std::string, MakeFile>> nodes_of(PortMads& port);
  void add_node(const PortMads& port, const std::string& name, const MakeFile& make_file);
  void add_device_file(const std::string& name, const MakeFile& make_file);
  void remove_umad(const PortMads& port);

  const Parts parts_;
  FabricSubnets subnets_;
  std::vector<std::unique_ptr<SubnetMads>> subnet_mads_;  // as subnets_.all()
  std::shared_ptr<ReaderMemory> readers_;
  std::vector<std::unique_ptr<PortMads>> ports_;  // device by device
  std::unordered_map<const Device*, std::vector<PortMads*>> by_device_;
  std::unique_ptr<SaFiles> sa_;
  std::unique_ptr<LimiterFiles> limits_;
};

}  // namespace rocefs
