// Fabric: everything that packets pass: devices, links, switches, built from a topology. It runs on
// any scheduler: the engine's, or one that a test drives.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/counter.h"
#include "core/engine.h"
#include "core/scheduler.h"
#include "core/topology.h"
#include "rdma/link.h"
#include "rdma/packet.h"
#include "rdma/switch.h"
#include "rdma/trace_hash.h"
#include "rdma/wire/ip.h"

namespace rocefs {

class Device;
class Port;
class SwitchNpcc;
class Uplink;
struct NpccFlowKey;

// Sees each packet as its NIC port transmits it, once, before loss; the frame holds payload, pad
// and ICRC.
class CaptureSink {
 public:
  virtual ~CaptureSink() = default;
  virtual void captured(const Port& from, const Packet& packet, TimeNs now) = 0;
};

// Drops that belong to no port and no link.
struct FabricCounters {
  Counter stale_payloads, unroutable, no_device;
};
inline constexpr CounterRow<FabricCounters> kFabricCounters[] = {
    {"drops/stale_payloads", &FabricCounters::stale_payloads,
     "packets whose memory region had gone before they arrived"},
    {"drops/unroutable", &FabricCounters::unroutable,
     "packets for an address to which a switch has no route"},
    {"drops/no_device", &FabricCounters::no_device,
     "packets that arrived at a device without a driver"},
};

class Fabric {
 public:
  // Before the engine starts, or on its thread.
  Fabric(const Topology& topology, uint64_t seed, Scheduler& scheduler, Outstanding& outstanding);
  ~Fabric();

  Scheduler& scheduler() { return scheduler_; }
  Outstanding& outstanding() { return outstanding_; }
  PacketPool& pool() { return pool_; }
  FabricCounters& counters() { return counters_; }
  const FabricCounters& counters() const { return counters_; }
  uint64_t seed() const { return seed_; }

  const std::vector<std::unique_ptr<Device>>& devices() const { return devices_; }
  const std::vector<std::unique_ptr<Link>>& links() const { return links_; }
  const std::vector<std::unique_ptr<Switch>>& switches() const { return switches_; }
  const std::vector<std::unique_ptr<Uplink>>& uplinks() const { return uplinks_; }
  // One for each of the switches.
  const std::vector<std::unique_ptr<SwitchNpcc>>& npcc() const { return npcc_; }
  // Null if there is none of that name.
  Device* device(std::string_view name);
  Port* port(std::string_view name);  // DEVICE or DEVICE/N
  Link* link(std::string_view name);
  Switch* find_switch(std::string_view name);
  Uplink* uplink(std::string_view name);
  // Whether an uplink is bound to that address of ours. Any thread.
  bool reaches_outside(const Ip& own) const;
  // Where one of links() leads to, as the topology names it.
  const std::string& far_end(const Link& link) const;
  const TraceHash& trace() const { return trace_; }

  // Core thread. Nothing is on its way any more, chance and trace begin anew.
  void reset();
  // Null ends capturing.
  void set_capture(CaptureSink* sink) { capture_ = sink; }
  void capture(const Port& from, Packet* packet, TimeNs now) {
    if (capture_ && materialize(pool_, packet)) capture_->captured(from, *packet, now);
  }

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
  // The one that has this address, or null.
  Device* device_at(const Ip& address) const;
  std::optional<uint32_t> sender_of(const NpccFlowKey& flow) const;
  void route_groups();

  Scheduler& scheduler_;
  Outstanding& outstanding_;
  const uint64_t seed_;
  PacketPool pool_;
  TraceHash trace_;
  FabricCounters counters_;
  CaptureSink* capture_ = nullptr;
  std::vector<std::unique_ptr<Switch>> switches_;
  std::vector<std::unique_ptr<SwitchNpcc>> npcc_;
  std::vector<std::unique_ptr<Uplink>> uplinks_;
  std::vector<std::unique_ptr<Link>> links_;
  std::vector<std::unique_ptr<Device>> devices_;
  // Who is where: links_[i] leads from ends_[i].first to ends_[i].second, by name.
  std::vector<std::pair<std::string, std::string>> ends_;
};

}  // namespace rocefs
