// CnpQueue: CNPs of a port, from their cause to the wire.
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
  CnpQueue(const CnpQueue&) = delete;
  CnpQueue& operator=(const CnpQueue&) = delete;

  // True if the queue pair may send a CNP now (NotificationPoint).
  bool may_notify(Qp& qp, TimeNs now) const;
  // Queues a CNP of the queue pair, unless may_notify() is false. `address` is complete but for the
  // traffic class.
  void notify(Qp& qp, CnpCause cause, CnpAddress address, TimeNs now);
  // True if pull() has a packet.
  bool ready() const { return !due_.empty(); }
  // Takes the next packet to transmit, which counts as sent; null if none is due.
  PacketPtr pull(TimeNs now);
  // Drops all that has not been transmitted.
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
