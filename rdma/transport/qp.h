// Qp: a queue pair: its state, its attributes, its two halves, and its place in the port's lists of
// those that have something to transmit.
#pragma once

#include <cstdint>

#include "rdma/cc/cnp.h"
#include "rdma/packet/verbs.h"
#include "rdma/transport/completion_queue.h"
#include "rdma/transport/congestion.h"
#include "rdma/transport/missing_psns.h"
#include "rdma/transport/notification_point.h"
#include "rdma/transport/qp_host.h"
#include "rdma/transport/receive_queue.h"
#include "rdma/transport/requester.h"
#include "rdma/transport/responder.h"
#include "rdma/transport/scatter_gather.h"
#include "rdma/transport/spray.h"

namespace rocefs {

// Is told in the middle of a packet's processing, and may only take note.
class QpObserver {
 public:
  virtual void qp_event(QpEvent event) = 0;

 protected:
  ~QpObserver() = default;
};

struct QpInit {
  QpType type = QpType::kRc;
  uint32_t pd = 0;
  CompletionSink* send_cq = nullptr;
  CompletionSink* receive_cq = nullptr;
  ReceiveQueue* shared_receives = nullptr;  // an SRQ, which outlives the QP; null: its own queue
  uint32_t send_depth = 128;
  uint32_t receive_depth = 128;
  Owner owner;
  QpObserver* observer = nullptr;  // until the queue pair is destroyed
};

class Qp {
 public:
  // Device::create_qp() makes them.
  Qp(QpHost& host, uint32_t number, uint64_t serial, const QpInit& init);
  ~Qp();
  Qp(const Qp&) = delete;
  Qp& operator=(const Qp&) = delete;

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

  uint32_t number() const { return number_; }
  // Of all that have this number, one after the other.
  uint64_t serial() const { return serial_; }
  QpType type() const { return init_.type; }
  QpState state() const { return state_; }
  uint32_t pd() const { return init_.pd; }
  const QpAttributes& attributes() const { return attributes_; }
  // Of its packets, by its path's traffic class; of UD that of the datagram to send next.
  size_t priority() const { return priority_; }
  const Owner& owner() const { return init_.owner; }
  QpHost& host() { return host_; }
  // Chosen in the transition to INIT; until then the first.
  QpPort& port() { return *port_; }
  Scheduler& scheduler() { return host_.scheduler(); }
  CompletionSink& send_cq() { return *init_.send_cq; }
  CompletionSink& receive_cq() { return *init_.receive_cq; }
  ReceiveQueue& receives() { return init_.shared_receives ? *init_.shared_receives : receives_; }
  bool has_shared_receives() const { return init_.shared_receives != nullptr; }
  Requester& requester() { return requester_; }
  Responder& responder() { return responder_; }
  NotificationPoint& notification_point() { return notification_point_; }
  Congestion& congestion() { return congestion_; }
  // Of CNPs to that queue pair at the far end of the path, but for the traffic class.
  CnpAddress cnp_address(uint32_t remote_qpn) const;
  // A packet has come `ahead` of the one that should have: CFR may answer that with a CNP.
  void note_gap(uint64_t ahead);
  // The port gives all packets another traffic class.
  void traffic_class_changed();
  // Moves bytes with the rights of `access`, an Access mask.
  Mover mover(MemoryListener& listener, uint8_t access);

  // What stands behind the BTH of the packet that is being built. Only what its opcode calls for
  // means something; the rest is left from others, since clearing it all takes longer than the
  // rest.
  wire::Extensions& extensions() { return extensions_; }
  // The packet's headers: those of the connection with `fields` and extensions() (RC, UC).
  void write_headers(const wire::HeaderTemplate::Fields& fields, Packet* packet) const {
    write_headers(header_template_, fields, packet);
  }
  // Those of `base` instead.
  void write_headers(const wire::HeaderTemplate& base, const wire::HeaderTemplate::Fields& fields,
                     Packet* packet) const {
    packet->header_len = static_cast<uint16_t>(
        base.emit(fields, extensions_, packet->payload.length, packet->header));
  }
  // Whether an arriving packet comes from the far end of the connection and is for the near one.
  // Datagrams come from anywhere.
  bool matches_connection(const Packet& packet) const {
    return init_.type == QpType::kUd || header_template_.answered_by(packet.header.data());
  }
  // How far from the flow's own UDP source port the next packet goes that may be sprayed.
  uint16_t next_port_offset(TimeNs now);
  // What this end says of selective retransmission in each packet of a reliable connection.
  uint8_t selective_bit() const;
  // How long packets of this connection may be missing before they are lost.
  MissingPsns::ReorderLimits reorder_limits();
  // IP, UDP and BTH as fields, to any far end.
  wire::Headers headers_to(const AddressVector& path, uint32_t remote_qpn) const;

  // Whether packets of requests may be sent; whether requests are taken.
  bool sends() const { return state_ == QpState::kRts || state_ == QpState::kSqd; }
  bool receives_packets() const {
    return sends() || state_ == QpState::kRtr || state_ == QpState::kSqe;
  }

  // UD: whether the queue pair waits among those of the priority that a datagram to `path` has. If
  // not it does from now on, and will be asked again.
  bool ensure_queued(const AddressVector& path);
  // Has data to transmit: requests, or responses to READs and atomics.
  void make_data_ready();
  // Has an acknowledgement to transmit: those go before data.
  void make_acknowledge_ready();
  // Whether there may be a data packet; it may still have to wait.
  bool has_data() const { return requester_.has_more() || responder_.owes_response(); }
  // The next data packet: requests and responses in turn.
  Packet* emit_data(TimeNs now);

  // Work on memory has ended; a QP that was waiting for that to be destroyed may go.
  void memory_settled();
  bool memory_pending() const;
  // The QP is going: whoever made its completion queues takes them away, `sink` takes what still
  // ends, and nothing more is transmitted.
  void retire(CompletionSink& sink);
  // Queued requests end with kFlushed. Again is harmless.
  void enter_error();
  // UC and UD: a send request has failed; the receiving half goes on.
  void enter_send_error();
  // Tells the observer, once until the next reset; of a drained queue in each SQD.
  void raise(QpEvent event);

  // Its place in the lists of its port, which alone looks at it.
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
  void move_to(QpPort& port, size_t priority);

  QpHost& host_;
  QpPort* port_;
  const uint32_t number_;
  const uint64_t serial_;
  QpInit init_;
  QpState state_ = QpState::kReset;
  bool response_turn_ = false;
  uint8_t priority_ = 0;
  uint8_t raised_ = 0;  // a bit for each QpEvent
  QpAttributes attributes_;
  wire::HeaderTemplate header_template_;  // how every packet of this connection begins (RC, UC)
  wire::Extensions extensions_;
  Spray spray_;
  ReceiveQueue receives_;
  Requester requester_;
  Responder responder_;
  NotificationPoint notification_point_;
  Congestion congestion_;
  Links links_;
};

}  // namespace rocefs
