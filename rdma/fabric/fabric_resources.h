// FabricResources: shared by all devices, switches and links of one packet core: time, the packet
// pool, the count of work in progress, the trace, the capture; and drops that belong to no port and
// no link, which all cores count together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "core/base/counter.h"
#include "core/loop/engine.h"
#include "core/loop/scheduler.h"
#include "rdma/fabric/destination_table.h"
#include "rdma/packet/packet.h"
#include "rdma/packet/trace_hash.h"

namespace rocefs {

class Port;

// Receives each packet when its NIC port transmits it, once, before loss; the frame holds payload,
// pad and ICRC.
class CaptureSink {
 public:
  virtual ~CaptureSink() = default;
  virtual void captured(const Port& from, const Packet& packet, TimeNs now) = 0;
};

struct FabricCounters {
  Counter stale_payloads, unroutable, no_device;  // add_shared()
};
inline constexpr CounterRow<FabricCounters> kFabricCounters[] = {
    {"drops/stale_payloads", &FabricCounters::stale_payloads,
     "packets whose memory region had gone before they arrived"},
    {"drops/unroutable", &FabricCounters::unroutable,
     "packets for an address to which a switch has no route"},
    {"drops/no_device", &FabricCounters::no_device,
     "packets that arrived at a device without a driver"},
};

// Thread of the core, or before the engine starts.
class FabricResources {
 public:
  // The arguments outlive this object.
  FabricResources(uint64_t seed, Scheduler& scheduler, Outstanding& outstanding)
      : scheduler_(scheduler),
        common_scheduler_(scheduler),
        outstanding_(outstanding),
        seed_(seed),
        pool_(outstanding) {}
  // For a core of a fabric on several, whose common resources are `whole`. `alone`: see below.
  FabricResources(FabricResources& whole, PacketCore& core, std::function<void(Task)> alone)
      : scheduler_(core.scheduler()),
        common_scheduler_(whole.scheduler_),
        outstanding_(core.outstanding()),
        seed_(whole.seed_),
        core_(core.number()),
        pool_(outstanding_),
        counters_(whole.counters_),
        alone_(std::move(alone)) {}
  // For a region.
  FabricResources(FabricResources& whole, Region& region, std::function<void(Task)> alone)
      : scheduler_(region.scheduler()),
        common_scheduler_(whole.scheduler_),
        outstanding_(region.outstanding()),
        seed_(whole.seed_),
        pool_(outstanding_),
        counters_(whole.counters_),
        alone_(std::move(alone)) {}
  FabricResources(const FabricResources&) = delete;
  FabricResources& operator=(const FabricResources&) = delete;

  Scheduler& scheduler() { return scheduler_; }
  // For events that may touch all parts: they run as tasks of alone() do, and are set by such.
  Scheduler& common_scheduler() { return common_scheduler_; }
  Outstanding& outstanding() { return outstanding_; }
  PacketPool& pool() { return pool_; }
  DestinationTable& destinations() { return destinations_; }
  FabricCounters& counters() { return counters_; }
  const FabricCounters& counters() const { return counters_; }
  TraceHash& trace() { return trace_; }
  const TraceHash& trace() const { return trace_; }
  // Number of the packet core.
  size_t core() const { return core_; }
  // For what touches more than this core's part: runs `task` while no other core runs. At once if
  // there is none, or if the caller runs so already.
  void alone(Task task) {
    if (!alone_) return task();
    alone_(std::move(task));
  }
  // Whether alone() may run a task later.
  bool shares_fabric() const { return alone_ != nullptr; }
  // Seed of all random generators.
  uint64_t seed() const { return seed_; }

  // Null ends capturing.
  void set_capture(CaptureSink* sink) { capture_ = sink; }
  bool captures() const { return capture_ != nullptr; }
  void capture(const Port& from, Packet& packet, TimeNs now) {
    if (capture_ && materialize(packet)) capture_->captured(from, packet, now);
  }

 private:
  Scheduler& scheduler_;
  Scheduler& common_scheduler_;
  Outstanding& outstanding_;
  const uint64_t seed_;
  const size_t core_ = 0;
  PacketPool pool_;
  DestinationTable destinations_;
  TraceHash trace_;
  FabricCounters own_counters_;
  FabricCounters& counters_ = own_counters_;
  CaptureSink* capture_ = nullptr;
  const std::function<void(Task)> alone_ = nullptr;
};

}  // namespace rocefs
