// FabricResources: shared by all parts of a fabric: time, the packet pool, the count of work in
// progress, the trace, the capture, and drops that belong to no port and no link.
#pragma once

#include <cstdint>

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

// Core thread, or before the engine starts.
class FabricResources {
 public:
  // Both arguments outlive this object.
  FabricResources(uint64_t seed, Scheduler& scheduler, Outstanding& outstanding)
      : scheduler_(scheduler), outstanding_(outstanding), seed_(seed), pool_(outstanding) {}
  FabricResources(const FabricResources&) = delete;
  FabricResources& operator=(const FabricResources&) = delete;

  Scheduler& scheduler() { return scheduler_; }
  Outstanding& outstanding() { return outstanding_; }
  PacketPool& pool() { return pool_; }
  DestinationTable& destinations() { return destinations_; }
  FabricCounters& counters() { return counters_; }
  const FabricCounters& counters() const { return counters_; }
  TraceHash& trace() { return trace_; }
  const TraceHash& trace() const { return trace_; }
  // Seed of all random generators.
  uint64_t seed() const { return seed_; }

  // Null ends capturing.
  void set_capture(CaptureSink* sink) { capture_ = sink; }
  void capture(const Port& from, Packet& packet, TimeNs now) {
    if (capture_ && materialize(packet)) capture_->captured(from, packet, now);
  }

 private:
  Scheduler& scheduler_;
  Outstanding& outstanding_;
  const uint64_t seed_;
  PacketPool pool_;
  DestinationTable destinations_;
  TraceHash trace_;
  FabricCounters counters_;
  CaptureSink* capture_ = nullptr;
};

}  // namespace rocefs
