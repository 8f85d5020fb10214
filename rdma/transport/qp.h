// Qp: a queue pair: its context, its two halves, its congestion control, and its place in the
// port's lists of those that have something to transmit.
#pragma once

#include <cstdint>

#include "rdma/transport/congestion.h"
#include "rdma/transport/notification_point.h"
#include "rdma/transport/qp_context.h"
#include "rdma/transport/requester.h"
#include "rdma/transport/responder.h"

namespace rocefs {

class Qp final : public QpContext {
 public:
  // Device::create_qp() makes them.
  Qp(QpHost& host, uint32_t number, uint64_t serial, const QpInit& init);
  ~Qp();

  // A transition with the attributes that `mask` (of QpMask) names. EINVAL, with the reason, for a
  // transition that the type does not have, attributes that are missing or not allowed in it, or
  // out of range; nothing changes then. To RESET everything is forgotten, nothing completes; to ERR
  // everything queued ends with kFlushed.
  Result<void> modify(QpState to, const QpAttributes& attributes, uint32_t mask);
  Result<void> modify(QpState to) { return modify(to, {}, 0); }
  // RESET to INIT to RTR to RTS with all that these need of `attributes`.
  Result<void> bring_up(const QpAttributes& attributes);

  // EINVAL when the state (RESET, INIT, RTR) or the type has no such request, or it is malformed;
  // ENOMEM when the queue is full. In ERR and SQE it ends at once with kFlushed.
  Result<void> post(const SendRequest& request);
  // EINVAL in RESET, for a QP with an SRQ; ENOMEM when the queue is full.
  Result<void> post(const ReceiveRequest& request);

  Requester& requester() { return requester_; }
  Responder& responder() { return responder_; }
  NotificationPoint& notification_point() { return notification_point_; }
  Congestion& congestion() { return congestion_; }

  // The port gives all packets another traffic class.
  void traffic_class_changed();
  bool has_data() const override { return requester_.has_more() || responder_.owes_response(); }
  // The next data packet: requests and responses in turn.
  Packet* emit_data(TimeNs now);

  void memory_settled() override;
  bool memory_pending() const;
  // The QP is going: the owner of its completion queues takes them away, `sink` takes what still
  // ends, and nothing more is transmitted.
  void retire(CompletionSink& sink);
  void enter_error() override;
  void enter_send_error() override;

  // The queue pair's place in the lists of its port, which alone reads it.
  struct Links {
    Qp* next_data = nullptr;
    Qp* next_acknowledge = nullptr;
    bool in_data = false;
    bool in_acknowledges = false;
  };
  Links& links() { return links_; }

 private:
  void set_state(QpState to);
  void assign(const QpAttributes& attributes, uint32_t mask);
  Result<void> check_values(const QpAttributes& attributes, uint32_t mask) const;
  Result<void> check_request(const SendRequest& request) const;
  void reset();

  bool response_turn_ = false;
  Requester requester_;
  Responder responder_;
  NotificationPoint notification_point_;
  Congestion congestion_;  // the last: it asks the halves whether they have data
  Links links_;
};

}  // namespace rocefs
