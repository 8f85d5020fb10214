// Fabric: the emulated network: devices, links, switches, built from a topology. Runs on any
// scheduler: the engine's, or a test's.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/topology.h"
#include "rdma/fabric/fabric_resources.h"
#include "rdma/fabric/link.h"
#include "rdma/fabric/switch.h"
#include "rdma/wire/ip.h"

namespace rocefs {

class Device;
class Port;
class SwitchNpcc;
class Uplink;
struct NpccFlowKey;

class Fabric : public FabricResources {
 public:
  // Before the engine starts, or on its thread.
  Fabric(const Topology& topology, uint64_t seed, Scheduler& scheduler, Outstanding& outstanding);
  ~Fabric();

  const std::vector<std::unique_ptr<Device>>& devices() const { return devices_; }
  const std::vector<std::unique_ptr<Link>>& links() const { return links_; }
  const std::vector<std::unique_ptr<Switch>>& switches() const { return switches_; }
  const std::vector<std::unique_ptr<Uplink>>& uplinks() const { return uplinks_; }
  // One per switch.
  const std::vector<std::unique_ptr<SwitchNpcc>>& npcc() const { return npcc_; }
  // Null if there is none of that name.
  Device* device(std::string_view name);
  Port* port(std::string_view name);  // DEVICE or DEVICE/N
  Link* link(std::string_view name);
  Switch* find_switch(std::string_view name);
  Uplink* uplink(std::string_view name);
  // Whether an uplink is bound to this own address. Any thread.
  bool reaches_outside(const Ip& own) const;
  // Routes packets for one more address of a port's interface to it. Core thread.
  void add_address(const Port& port, const Ip& address);
  // Name of the node at the far end of one of links(), as in the topology.
  const std::string& far_end(const Link& link) const;

  // Core thread. Drops all packets in flight; restarts random numbers and trace.
  void reset();

 private:
  Link& add_link(const std::string& from, const std::string& to, const LinkSpec& spec);
  void cable(const LinkSpec& spec);
  void route();
  struct Way {
    unsigned distance = 0;
    std::vector<const Link*> links;
  };
  std::map<std::string, Way> ways_to(const std::vector<std::string>& ends) const;
  void route_to(const std::string& port, const PortSpec& spec);
  void route_outside();
  void join_outside();
  // The device with this address, or null.
  Device* device_at(const Ip& address) const;
  std::optional<uint32_t> sender_of(const NpccFlowKey& flow) const;
  void find_trunks();
  void grow_tree(const std::string& root, std::map<std::string, size_t>& parents) const;
  void route_groups();

  std::vector<std::unique_ptr<Switch>> switches_;
  std::vector<std::unique_ptr<SwitchNpcc>> npcc_;
  std::vector<std::unique_ptr<Uplink>> uplinks_;
  std::vector<std::unique_ptr<Link>> links_;
  std::vector<std::unique_ptr<Device>> devices_;
  // Names of the ends: links_[i] leads from ends_[i].first to ends_[i].second.
  std::vector<std::pair<std::string, std::string>> ends_;
  std::map<std::string, std::vector<const Link*>> to_ports_;  // by switch
  std::map<std::string, std::vector<size_t>> trunks_;         // links to a switch from others
};

}  // namespace rocefs
