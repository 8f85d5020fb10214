// QpContext: the state that the parts of a queue pair share: its state, attributes and address, its
// port and the NIC behind that. Hardware calls it the QPC. A queue pair consists of a context and
// parts, which know the context but not the queue pair. Core thread.
//
// In a large fabric each packet finds its queue pair outside of the cache: in context and parts the
// first cache lines have what most packets need.
#pragma once

#include <cstdint>

#include "core/base/prefetch.h"
#include "core/base/result.h"
#include "rdma/cc/cnp.h"
#include "rdma/packet/operations.h"
#include "rdma/packet/verbs.h"
#include "rdma/transport/completion_queue.h"
#include "rdma/transport/missing_psns.h"
#include "rdma/transport/qp_host.h"
#include "rdma/transport/receive_queue.h"
#include "rdma/transport/scatter_gather.h"
#include "rdma/transport/spray.h"

namespace rocefs {

// Observer of a queue pair's events. Called in the middle of a packet's processing: it may only
// take note.
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
  uint32_t xrc_domain = 0;                  // XRC_RECV
  uint32_t send_depth = 128;
  uint32_t receive_depth = 128;
  QpOwner owner;
  QpObserver* observer = nullptr;  // until the queue pair is destroyed
};

class QpContext {
 public:
  uint32_t number() const { return number_; }
  // Distinguishes queue pairs that have had the same number.
  uint32_t serial() const { return serial_; }
  QpType type() const { return init_.type; }
  bool reliable() const { return is_reliable(init_.type); }
  QpState state() const { return state_; }
  uint32_t pd() const { return init_.pd; }
  uint32_t xrc_domain() const { return init_.xrc_domain; }
  const QpAttributes& attributes() const { return attributes_; }
  // Priority of the queue pair's packets, by its path's traffic class; for UD, of the next
  // datagram.
  size_t priority() const { return priority_; }
  const QpOwner& owner() const { return init_.owner; }
  QpHost& host() { return host_; }
  // Port, chosen in the transition to INIT; the first port until then.
  QpPort& port() { return *port_; }
  Scheduler& scheduler() { return host_.scheduler(); }
  CompletionSink& send_cq() { return *init_.send_cq; }
  CompletionSink& receive_cq() { return *init_.receive_cq; }
  ReceiveQueue& receives() { return init_.shared_receives ? *init_.shared_receives : receives_; }
  bool has_shared_receives() const { return init_.shared_receives != nullptr; }

  // Whether request packets may be sent; whether they are taken.
  bool sends() const { return state_ == QpState::kRts || state_ == QpState::kSqd; }
  bool receives_packets() const {
    return sends() || state_ == QpState::kRtr || state_ == QpState::kSqe;
  }

  // Address of a CNP to `remote_qpn` at the far end of the path, except for the traffic class.
  CnpAddress cnp_address(uint32_t remote_qpn) const;
  // Notes a packet `ahead` PSNs beyond the expected one: CFR may answer it with a CNP.
  void note_gap(uint64_t ahead);
  // Mover of bytes with the rights of `access`, an Access mask.
  Mover mover(MemoryListener& listener, uint8_t access) { return mover(listener, access, pd()); }
  // Likewise, for regions of another protection domain: that of a shared receive queue.
  Mover mover(MemoryListener& listener, uint8_t access, uint32_t pd) {
    return {host_.memory(), pd, number_, access, listener};
  }
  // Opcode of the queue pair's service, for that of RC.
  wire::Opcode opcode(wire::Opcode of_rc) const { return opcode_of(init_.type, of_rc); }

  // Extension headers behind the BTH of the packet that is being built. Only those that its opcode
  // calls for are written; the rest keeps older values, since clearing would cost more than
  // filling.
  wire::Extensions& extensions() { return extensions_; }
  // Writes the packet's headers: those of the connection with `fields` and extensions() (not UD).
  void write_headers(const wire::HeaderTemplate::Fields& fields, Packet& packet) const {
    write_headers(header_template_, fields, packet);
  }
  // Writes them with the headers of `base` in place of the connection's (UD).
  void write_headers(const wire::HeaderTemplate& base, const wire::HeaderTemplate::Fields& fields,
                     Packet& packet) const {
    packet.header_len =
        static_cast<uint16_t>(base.emit(fields, extensions_, packet.payload.length, packet.header));
  }
  // Whether an arriving packet comes from the far end of the connection and is for the near one.
  // Datagrams come from anywhere.
  bool matches_connection(const Packet& packet) const {
    return init_.type == QpType::kUd || header_template_.answered_by(packet.header.data());
  }
  // Offset of the next packet's UDP source port from the flow's own, for packets that may be
  // sprayed.
  uint16_t next_port_offset(TimeNs now);
  // Announcement of selective retransmission in the BTH of each packet of a reliable connection.
  bool sr_capable() const;
  // Limits after which missing packets of this connection count as lost.
  MissingPsns::ReorderLimits reorder_limits();
  // Header fields of IP, UDP and BTH, to any far end.
  wire::Headers headers_to(const AddressVector& path, uint32_t remote_qpn) const;

  // UD: whether the queue pair is in the list of the priority of a datagram to `path`. If not, it
  // moves there and is asked again later.
  bool ensure_queued(const AddressVector& path);
  // Tells the port that there is data to transmit: requests, or responses to READs and atomics.
  void make_data_ready() {
    if (!data_held_) port_->add_data(qp_);
  }
  // Tells the port that an acknowledgement is due, which goes before data.
  void make_acknowledge_ready() { port_->add_acknowledge(qp_); }
  // Holds data back, or ends that: congestion control does so, and makes data ready when the time
  // has come.
  void hold_data(bool held) { data_held_ = held; }
  bool data_held() const { return data_held_; }

  // Reports an event to the observer, once until the next reset; a drained queue once in each SQD.
  void raise(QpEvent event);

  // Whether a data packet may be pending; it may still have to wait.
  virtual bool has_data() const = 0;
  // Ends all queued requests with kFlushed, and the connection. A second call has no effect.
  virtual void enter_error() = 0;
  // Ends the sending half after a failed send request (UC, UD); the receiving half goes on.
  virtual void enter_send_error() = 0;
  // Called when work on memory has ended: a queue pair under destruction may be able to go.
  virtual void memory_settled() = 0;

 protected:
  // Asks the CPU for what every packet reads: up to RETH and AETH in extensions_, and the type.
  void prefetch_context() const {
    prefetch_lines(this, 4);
    __builtin_prefetch(&init_);
  }
  // `qp` is the queue pair that this context belongs to.
  QpContext(Qp& qp, QpHost& host, uint32_t number, uint32_t serial, const QpInit& init);
  QpContext(const QpContext&) = delete;
  QpContext& operator=(const QpContext&) = delete;
  ~QpContext() = default;

  // Moves the queue pair to the lists of another port or priority.
  void move_to(QpPort& port, size_t priority);

  Qp& qp_;
  QpHost& host_;
  QpPort* port_;
  const uint32_t number_;
  const uint32_t serial_;
  QpState state_ = QpState::kReset;
  bool data_held_ = false;
  uint8_t priority_ = 0;
  uint8_t raised_ = 0;  // a bit for each QpEvent
  QpAttributes attributes_;
  wire::HeaderTemplate header_template_;  // headers common to all packets, but of UD
  wire::Extensions extensions_;
  QpInit init_;
  Spray spray_;
  ReceiveQueue receives_;
};

}  // namespace rocefs
