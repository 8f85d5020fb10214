// QpContext: what the parts of a queue pair share: its state, its attributes, its address, the port
// that it is on and the NIC behind that. The hardware's word for it is QPC. A queue pair is made of
// a context and of parts, which know the context but not each other's owner.
#pragma once

#include <cstdint>

#include "core/base/result.h"
#include "rdma/cc/cnp.h"
#include "rdma/packet/verbs.h"
#include "rdma/transport/completion_queue.h"
#include "rdma/transport/missing_psns.h"
#include "rdma/transport/qp_host.h"
#include "rdma/transport/receive_queue.h"
#include "rdma/transport/scatter_gather.h"
#include "rdma/transport/spray.h"

namespace rocefs {

// Called in the middle of a packet's processing: an observer may only take note.
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
  QpOwner owner;
  QpObserver* observer = nullptr;  // until the queue pair is destroyed
};

class QpContext {
 public:
  uint32_t number() const { return number_; }
  // Distinguishes queue pairs that have had the same number.
  uint64_t serial() const { return serial_; }
  QpType type() const { return init_.type; }
  QpState state() const { return state_; }
  uint32_t pd() const { return init_.pd; }
  const QpAttributes& attributes() const { return attributes_; }
  // The priority of its packets, by its path's traffic class; of UD that of the datagram to send
  // next.
  size_t priority() const { return priority_; }
  const QpOwner& owner() const { return init_.owner; }
  QpHost& host() { return host_; }
  // Chosen in the transition to INIT; until then the first.
  QpPort& port() { return *port_; }
  Scheduler& scheduler() { return host_.scheduler(); }
  CompletionSink& send_cq() { return *init_.send_cq; }
  CompletionSink& receive_cq() { return *init_.receive_cq; }
  ReceiveQueue& receives() { return init_.shared_receives ? *init_.shared_receives : receives_; }
  bool has_shared_receives() const { return init_.shared_receives != nullptr; }

  // Whether packets of requests may be sent; whether requests are taken.
  bool sends() const { return state_ == QpState::kRts || state_ == QpState::kSqd; }
  bool receives_packets() const {
    return sends() || state_ == QpState::kRtr || state_ == QpState::kSqe;
  }

  // The address of a CNP to that queue pair at the far end of the path, but for the traffic class.
  CnpAddress cnp_address(uint32_t remote_qpn) const;
  // A packet has come `ahead` PSNs of the expected one: CFR may answer that with a CNP.
  void note_gap(uint64_t ahead);
  // Moves bytes with the rights of `access`, an Access mask.
  Mover mover(MemoryListener& listener, uint8_t access);

  // The extension headers behind the BTH of the packet that is being built. Only those that its
  // opcode calls for are written; the rest keeps older values, since to clear it would cost more
  // than to fill it.
  wire::Extensions& extensions() { return extensions_; }
  // Writes the packet's headers: those of the connection with `fields` and extensions() (RC, UC).
  void write_headers(const wire::HeaderTemplate::Fields& fields, Packet* packet) const {
    write_headers(header_template_, fields, packet);
  }
  // The same with those of `base` (UD).
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
  // The offset of the next packet that may be sprayed from the flow's own UDP source port.
  uint16_t next_port_offset(TimeNs now);
  // What this end announces of selective retransmission in each packet of a reliable connection.
  uint8_t selective_bit() const;
  // How long packets of this connection may be missing before they are lost.
  MissingPsns::ReorderLimits reorder_limits();
  // IP, UDP and BTH as fields, to any far end.
  wire::Headers headers_to(const AddressVector& path, uint32_t remote_qpn) const;

  // UD: whether the queue pair waits among those of the priority that a datagram to `path` has. If
  // not it does from now on, and will be asked again.
  bool ensure_queued(const AddressVector& path);
  // Tells the port that there is data to transmit: requests, or responses to READs and atomics.
  void make_data_ready() {
    if (!data_held_) port_->add_data(qp_);
  }
  // Tells the port that an acknowledgement is due: those go before data.
  void make_acknowledge_ready() { port_->add_acknowledge(qp_); }
  // Data waits for its time: congestion control sets it, and makes data ready when it clears it.
  void hold_data(bool held) { data_held_ = held; }
  bool data_held() const { return data_held_; }

  // Tells the observer, once until the next reset; of a drained queue in each SQD.
  void raise(QpEvent event);

  // Whether there may be a data packet; it may still have to wait.
  virtual bool has_data() const = 0;
  // Ends all that is queued with kFlushed, and the connection. A second call has no effect.
  virtual void enter_error() = 0;
  // UC and UD: a send request has failed; the receiving half goes on.
  virtual void enter_send_error() = 0;
  // Work on memory has ended: a queue pair that is being destroyed may be able to go.
  virtual void memory_settled() = 0;

 protected:
  // `qp` is the queue pair that is being made of this context.
  QpContext(Qp& qp, QpHost& host, uint32_t number, uint64_t serial, const QpInit& init);
  QpContext(const QpContext&) = delete;
  QpContext& operator=(const QpContext&) = delete;
  ~QpContext() = default;

  // To the lists of another port or priority.
  void move_to(QpPort& port, size_t priority);

  Qp& qp_;
  QpHost& host_;
  QpPort* port_;
  const uint32_t number_;
  const uint64_t serial_;
  QpInit init_;
  QpState state_ = QpState::kReset;
  bool data_held_ = false;
  uint8_t priority_ = 0;
  uint8_t raised_ = 0;  // a bit for each QpEvent
  QpAttributes attributes_;
  wire::HeaderTemplate header_template_;  // how every packet of this connection begins (RC, UC)
  wire::Extensions extensions_;
  Spray spray_;
  ReceiveQueue receives_;
};

}  // namespace rocefs
