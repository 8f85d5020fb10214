// NotificationPoint: the NP of one queue pair: whether it may send a CNP now. CnpQueue: the CNPs of
// a port, from their cause to the wire.
#pragma once

#include <cstdint>

#include "core/scheduler.h"
#include "rdma/cnp.h"
#include "rdma/packet.h"

namespace rocefs {

class Port;
class Qp;

enum class CnpCause : uint8_t { kEcn, kOutOfOrder };

class NotificationPoint {
 public:
  // On the wire CNPs of a queue pair are never closer than `gap`: that is why one that is under way
  // holds the next one back, and why it counts from when it was transmitted.
  bool may_notify(TimeNs gap, TimeNs now) const { return !under_way_ && now - sent_at_ >= gap; }
  void begin() { under_way_ = true; }
  void sent(TimeNs now) {
    under_way_ = false;
    sent_at_ = now;
  }
  void reset() { *this = {}; }

 private:
  TimeNs sent_at_ = -(TimeNs{1} << 62);
  bool under_way_ = false;
};

class CnpQueue {
 public:
  explicit CnpQueue(Port& port);
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

  Port& port_;
  PacketFifo in_process_;  // each until its `arrival`
  PacketFifo due_;
  Event event_;
};

}  // namespace rocefs
