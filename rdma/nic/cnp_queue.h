// CnpQueue: the CNPs of a port, from their cause to the wire.
#pragma once

#include "core/loop/scheduler.h"
#include "rdma/cc/cnp.h"
#include "rdma/nic/port_host.h"
#include "rdma/packet/packet.h"
#include "rdma/transport/notification_point.h"

namespace rocefs {

class CnpQueue {
 public:
  explicit CnpQueue(PortBase& port);
  ~CnpQueue();
  CnpQueue(const CnpQueue&) = delete;
  CnpQueue& operator=(const CnpQueue&) = delete;

  // Whether this queue pair may send a CNP now.
  bool may_notify(Qp& qp, TimeNs now) const;
  // A CNP of this queue pair, unless it may not. `address` is complete but for the traffic class.
  void notify(Qp& qp, CnpCause cause, CnpAddress address, TimeNs now);
  // Whether pull() has one.
  bool ready() const { return !due_.empty(); }
  // The traffic class's priority is the packet's own.
  const Packet* front() const { return due_.front(); }
  // The next to transmit, which counts as sent; null if none is due.
  Packet* pull(TimeNs now);
  // What has not been transmitted is dropped.
  void clear();

 private:
  void on_due(TimeNs now);
  void settle(const Packet& packet, TimeNs now);

  PortBase& port_;
  PacketFifo in_process_;  // each until its `arrival`
  PacketFifo due_;
  Event event_;
};

}  // namespace rocefs
