// Fabric: the emulated network: devices, links, switches, built from a topology. Runs on any
// scheduler: the engine's, or a test's; or in parts on several packet cores.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/slabs.h"
#include "core/config/topology.h"
#include "rdma/fabric/fabric_resources.h"
#include "rdma/fabric/link.h"
#include "rdma/fabric/switch.h"
#include "rdma/network/core_exchange.h"
#include "rdma/network/core_plan.h"
#include "rdma/network/name_index.h"
#include "rdma/network/reconvergence.h"
#include "rdma/network/region_exchange.h"
#include "rdma/network/way_search.h"
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
  // On as many cores as `plan` says, which the engine must have. With several, what this object has
  // as FabricResources is for the first core while it is alone, and each part has its own. With
  // regions in the engine, `plan` says which node is in which of them.
  Fabric(const Topology& topology, uint64_t seed, Engine& engine, const CorePlan& plan);
  ~Fabric();

  // Resources of the part with this device, switch, uplink or port.
  FabricResources& part_of(std::string_view node) {
    return parts_.empty() ? *this : *parts_[plan_.core_of(node)];
  }
  // Whether threads may run parts of it beside each other, under the virtual clock.
  bool in_regions() const { return regions_ != nullptr; }
  // The least delay of a cable between two regions; kNever if there is none. Alone.
  TimeNs lookahead() const;
  // Hash of the traces of all parts; one's own with one part. Any thread.
  uint64_t trace_hash() const;
  // Captures in all parts; null ends it. Alone.
  void capture_by(CaptureSink* sink);

  const std::vector<std::unique_ptr<Device>>& devices() const { return devices_; }
  const std::vector<Link*>& links() const { return links_; }
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
  Reconvergence& reconvergence() { return *reconvergence_; }
  // Name of the node at the far end of one of links(), as in the topology.
  const std::string& far_end(const Link& link) const;
  // Parameters that one of links() has at first. Any thread.
  const LinkParameters& initial_parameters(const Link& link) const {
    return initial_[link.id() / 2];
  }

  // Links of a shortest way from port to port, in their order, over all cables, up or down; empty
  // without a way. Searches once for each switch that a port is cabled to.
  std::vector<const Link*> way(const Port& from, const Port& to);

  // Core thread. Drops all packets in flight; restarts random numbers and trace.
  void reset();
  // Core thread. Every counter of the fabric is 0 again.
  void clear_counters();

 private:
  static constexpr uint32_t kNoHub = UINT32_MAX, kNoLink = UINT32_MAX;
  // Ends of one of links().
  struct Wire {
    std::string from, to;                         // names
    uint32_t from_hub = kNoHub, to_hub = kNoHub;  // numbers of the switches among them
    uint16_t port = 0;                            // of from_hub
  };
  void build(const Topology& topology);
  void add_cores(Engine& engine);
  void add_regions(Regions& regions);
  const LinkSides& sides_of(const std::string& from, const std::string& to);
  Link& add_link(const std::string& from, const std::string& to, unsigned parallel);
  void cable(const LinkSpec& spec);
  void route();
  void place_destinations();
  void serve_outside();
  void route_switches();
  void route_outside(WaySearch& search);
  bool cable_works(uint32_t cable) const;
  const std::vector<uint32_t>& links_towards(uint32_t hub);
  void join_outside();
  // The device with this address, or null.
  Device* device_at(const Ip& address) const;
  Device* sender_known_by(const NpccFlowKey& flow) const;
  std::optional<uint32_t> sender_of(const NpccFlowKey& flow, std::optional<uint32_t> last) const;
  void find_trunks();
  void grow_tree(uint32_t root, std::vector<const Trunk*>& parents,
                 std::vector<uint32_t>& members) const;
  void route_groups();

  const CorePlan plan_;
  std::vector<std::unique_ptr<FabricResources>> parts_;        // by core or region; empty with one
  std::vector<std::unique_ptr<RegionExchange>> exchanges_;     // by region
  std::vector<std::unique_ptr<CoreExchange>> core_exchanges_;  // by core
  Regions* regions_ = nullptr;                                 // null: there are none
  std::map<std::pair<size_t, size_t>, LinkSides> sides_;  // by part, of the links from it to it
  std::vector<std::unique_ptr<Switch>> switches_;
  std::vector<std::unique_ptr<SwitchNpcc>> npcc_;
  std::vector<std::unique_ptr<Uplink>> uplinks_;
  Slabs<Link> link_memory_;  // of links that no switch transmits on
  std::vector<Link*> links_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<Wire> wires_;                         // of links_
  std::vector<LinkParameters> initial_;             // by cable
  std::vector<std::vector<const Link*>> to_ports_;  // by switch: links to ports and uplinks
  std::vector<std::vector<Trunk>> trunks_;          // by switch: links to it from others
  std::vector<uint32_t> name_ranks_;                // by switch: its place in the order of names
  // First link of each switch on a way(), by the switch at its end. Empty: not searched yet.
  std::vector<std::vector<uint32_t>> towards_;
  std::unique_ptr<Reconvergence> reconvergence_;
  NameIndex<Device> device_names_;
  NameIndex<Link> link_names_;
  NameIndex<Switch> switch_names_;
  NameIndex<Uplink> uplink_names_;
  // Device that had this address last; it may have lost it.
  std::unordered_map<Ip, Device*, IpHash> by_address_;
};

}  // namespace rocefs
