#include "rdma/nic/cnp_queue.h"

namespace rocefs {

CnpQueue::CnpQueue(PortBase& port) : port_(port), event_(event_of<&CnpQueue::on_due>(this)) {}

bool CnpQueue::may_notify(Qp& qp, TimeNs now) const {
  return qp.notification_point().may_notify(port_.ecn().np().gap, now);
}

void CnpQueue::notify(Qp& qp, CnpCause cause, CnpAddress address, TimeNs now) {
  if (!may_notify(qp, now)) return;
  const NpParameters& np = port_.ecn().np();
  qp.notification_point().begin();
  address.traffic_class = static_cast<uint8_t>(np.dscp << 2);
  PacketPtr packet = make_cnp(port_.host().pool(), address);
  // Sender names the queue pair for settle(); there is no listener to call.
  packet->sender = {qp.number(), qp.serial(), static_cast<uint32_t>(cause)};
  if (np.processing_delay == 0 && in_process_.empty()) {
    due_.push(std::move(packet));
    return port_.kick();
  }
  packet->arrival = now + np.processing_delay;
  if (in_process_.empty()) qp.scheduler().at(event_, packet->arrival);
  in_process_.push(std::move(packet));
}

void CnpQueue::on_due(TimeNs now) {
  while (!in_process_.empty() && in_process_.front()->arrival <= now) {
    due_.push(in_process_.pop());
  }
  Scheduler& scheduler = port_.host().scheduler();
  if (!in_process_.empty()) scheduler.at(event_, in_process_.front()->arrival);
  port_.kick();
}

// Lets the queue pair send its next CNP; it may have been destroyed since.
void CnpQueue::settle(const Packet& packet, TimeNs now) {
  Qp* qp = port_.host().qps().find(packet.sender.qpn);
  if (qp && qp->serial() == packet.sender.serial) qp->notification_point().sent(now);
}

PacketPtr CnpQueue::pull(TimeNs now) {
  PacketPtr packet = due_.pop();
  if (!packet) return nullptr;
  settle(*packet, now);
  PortCounters& counters = port_.counters();
  counters.np_cnp_sent.add();
  if (packet->sender.position == static_cast<uint32_t>(CnpCause::kEcn)) {
    counters.np_cnp_sent_ecn.add();
  } else {
    counters.np_cnp_sent_ooo.add();
  }
  return packet;
}

void CnpQueue::clear() {
  Scheduler& scheduler = port_.host().scheduler();
  scheduler.cancel(event_);
  for (PacketFifo* fifo : {&in_process_, &due_}) {
    while (PacketPtr packet = fifo->pop()) settle(*packet, scheduler.now());
  }
}

}  // namespace rocefs
