// QpHost and QpPort: the services of the NIC and of the port that a queue pair needs. Devices and
// their ports implement them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "core/base/counter.h"
#include "core/loop/engine.h"
#include "core/loop/scheduler.h"
#include "rdma/cc/cfr.h"
#include "rdma/cc/cnp.h"
#include "rdma/cc/ecn_knobs.h"
#include "rdma/cc/pacing.h"
#include "rdma/packet/memory.h"
#include "rdma/packet/packet.h"
#include "rdma/transport/class_override.h"
#include "rdma/transport/notification_point.h"
#include "rdma/transport/port_counters.h"
#include "rdma/transport/registers.h"
#include "rdma/transport/selective.h"
#include "rdma/transport/spray.h"
#include "rdma/transport/xrc_queues.h"

namespace rocefs {

class Qp;
class QpPort;

// Core thread. Outlives its queue pairs.
class QpHost : public PacketListener {
 public:
  // Objects shared by everything in the NIC's fabric, which outlive the NIC.
  struct Shared {
    PacketPool& pool;
    Scheduler& scheduler;
    Outstanding& outstanding;
    Counter& stale_payloads;
  };

  const std::string& name() const { return name_; }
  PacketPool& pool() { return shared_.pool; }
  Scheduler& scheduler() { return shared_.scheduler; }
  Outstanding& outstanding() { return shared_.outstanding; }
  Counter& stale_payloads() { return shared_.stale_payloads; }
  MemoryTable& memory() { return memory_; }
  Cfr& cfr() { return cfr_; }
  const Cfr& cfr() const { return cfr_; }
  PacingSettings& pacing() { return pacing_; }
  Registers& registers() { return registers_; }
  SpraySettings& spraying() { return spraying_; }
  SelectiveSettings& selective() { return selective_; }
  XrcQueues& xrc_queues() { return xrc_queues_; }

  // Port of this number, from 1; null if there is none.
  virtual QpPort* find_port(size_t number) = 0;
  // Called from within a queue pair under destruction when its work on memory has ended.
  virtual void reap_later() = 0;
  // Called when the reaction to CNPs, its pacing, or a port's traffic class, has changed: every
  // queue pair chooses anew.
  virtual void reactions_changed() = 0;
  virtual void traffic_classes_changed() = 0;

 protected:
  QpHost(std::string name, const Shared& shared)
      : name_(std::move(name)),
        shared_(shared),
        cfr_([this] { reactions_changed(); }),
        pacing_([this] { reactions_changed(); }),
        registers_(name_, cfr_) {}
  QpHost(const QpHost&) = delete;
  QpHost& operator=(const QpHost&) = delete;
  ~QpHost() override = default;

 private:
  const std::string name_;
  const Shared shared_;
  Cfr cfr_;
  PacingSettings pacing_;
  Registers registers_;
  SpraySettings spraying_;
  SelectiveSettings selective_;
  XrcQueues xrc_queues_;
  MemoryTable memory_;
};

// Core thread. Outlives the queue pairs that are on it.
class QpPort {
 public:
  PortCounters& counters() { return counters_; }
  const PortCounters& counters() const { return counters_; }
  EcnKnobs& ecn() { return ecn_; }
  const EcnKnobs& ecn() const { return ecn_; }
  ClassOverride& class_override() { return class_override_; }

  // MTU in octets of payload.
  virtual uint32_t mtu() const = 0;
  // Rate of the link, Ethernet framing included; 0 without a link.
  virtual uint64_t line_bps() const = 0;
  // Time in which `octets`, counted from the IP header to the ICRC, arrive.
  virtual double receive_ns(uint64_t octets) const = 0;
  // Enters a queue pair that has data, or an acknowledgement, to transmit. A second call has no
  // effect.
  virtual void add_data(Qp& qp) = 0;
  virtual void add_acknowledge(Qp& qp) = 0;
  // Removes a queue pair from both lists.
  virtual void forget(Qp& qp) = 0;
  // Sends a CNP of the queue pair, unless its last one is too recent. `address` is complete except
  // for the traffic class.
  virtual void notify(Qp& qp, CnpCause cause, const CnpAddress& address, TimeNs now) = 0;

 protected:
  explicit QpPort(QpHost& host) : class_override_([&host] { host.traffic_classes_changed(); }) {
    ecn_.on_priorities([&host] { host.reactions_changed(); });
  }
  QpPort(const QpPort&) = delete;
  QpPort& operator=(const QpPort&) = delete;
  ~QpPort() = default;

  PortCounters counters_;
  EcnKnobs ecn_;
  ClassOverride class_override_;
};

}  // namespace rocefs
