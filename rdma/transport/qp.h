// Qp: a queue pair: its context, requester, responder and congestion control, and its place in the
// port's lists of queue pairs with something to transmit. Only the core thread may touch it, from
// its creation to its destruction.
#pragma once

#include <cstdint>

#include "core/base/prefetch.h"

#include "rdma/transport/congestion.h"
#include "rdma/transport/notification_point.h"
#include "rdma/transport/qp_context.h"
#include "rdma/transport/requester.h"
#include "rdma/transport/responder.h"

namespace rocefs {

class Qp final : public QpContext {
 public:
  // Created by Device::create_qp().
  Qp(QpHost& host, uint32_t number, uint32_t serial, const QpInit& init);
  ~Qp();

  // Makes a transition with the attributes that `mask` (of QpMask) names. EINVAL, with the reason,
  // for a transition that the type does not have, and for attributes that are missing, not allowed
  // in it or out of range; nothing changes then. A transition to RESET drops all requests without
  // completions; one to ERR ends them with kFlushed.
  Result<void> modify(QpState to, const QpAttributes& attributes, uint32_t mask);
  Result<void> modify(QpState to) { return modify(to, {}, 0); }
  // Makes the transitions RESET to INIT to RTR to RTS with all attributes that these need.
  Result<void> bring_up(const QpAttributes& attributes);

  // Posts a send request. EINVAL when the state (RESET, INIT, RTR) or the type does not allow it,
  // or it is malformed; ENOMEM when the queue is full. In ERR and SQE it ends at once with
  // kFlushed.
  Result<void> post(const SendRequest& request);
  // Posts a receive request. EINVAL in RESET, and for a QP with an SRQ; ENOMEM when the queue is
  // full.
  Result<void> post(const ReceiveRequest& request);

  Requester& requester() { return requester_; }
  Responder& responder() { return responder_; }
  NotificationPoint& notification_point() { return notification_point_; }
  Congestion& congestion() { return congestion_; }

  // Applies a change of the port's traffic class.
  void traffic_class_changed();
  bool has_data() const override { return requester_.has_more() || responder_.owes_response(); }
  // Emits the next data packet: requests and responses in turn.
  PacketPtr emit_data(TimeNs now);

  void memory_settled() override;
  bool memory_pending() const;
  // Prepares destruction: the owner takes its completion queues away, `sink` takes the remaining
  // completions, and no packet is transmitted any more.
  void retire(CompletionSink& sink);
  void enter_error() override;
  void enter_send_error() override;

  // Place in the lists of the port, which alone reads it.
  struct alignas(32) Links {
    Qp* next_data = nullptr;
    Qp* next_acknowledge = nullptr;
    bool in_data = false;
    bool in_acknowledges = false;
  };
  Links& links() { return links_; }
  // Asks the CPU for most of what a half reads for each packet: for one that it emits in two steps,
  // 2 and 3, since a CPU has few misses under way at once.
  void prefetch_requester(int step) const {
    if (step == 2) return prefetch_shared();
    requester_.prefetch();
    responder_.prefetch_owed();
    __builtin_prefetch(&congestion_, 1);
    requester_.prefetch_current();
  }
  void prefetch_completer() const {
    prefetch_shared();
    requester_.prefetch();
    responder_.prefetch_owed();
    prefetch_two_lines(&congestion_);
  }
  void prefetch_responder() const {
    prefetch_shared();
    responder_.prefetch();
  }

 private:
  // Asks for all that both halves read for each packet.
  void prefetch_shared() const {
    __builtin_prefetch(&links_, 1);
    prefetch_context();
  }
  void set_state(QpState to);
  void assign(const QpAttributes& attributes, uint32_t mask);
  Result<void> check_values(const QpAttributes& attributes, uint32_t mask) const;
  Result<void> check_request(const SendRequest& request) const;
  void reset();

  Links links_;
  bool response_turn_ = false;
  Requester requester_;
  Responder responder_;
  NotificationPoint notification_point_;
  Congestion congestion_;  // last: it asks the halves whether they have data
};

}  // namespace rocefs
