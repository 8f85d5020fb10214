// Qp: a queue pair with a reliable connection: its state, its attributes, its two halves, and its
// place in the port's lists of those that have something to transmit.
#pragma once

#include <cstdint>

#include "rdma/completion_queue.h"
#include "rdma/requester.h"
#include "rdma/responder.h"
#include "rdma/verbs.h"

namespace rocefs {

class Device;
class Port;

struct QpInit {
  uint8_t port = 1;  // of the device
  uint32_t pd = 0;
  CompletionQueue* send_cq = nullptr;
  CompletionQueue* receive_cq = nullptr;
  uint32_t send_depth = 128;
  uint32_t receive_depth = 128;
  Owner owner;
};

class Qp {
 public:
  // Device::create_qp() makes them.
  Qp(Device& device, Port& port, uint32_t number, const QpInit& init);
  ~Qp();
  Qp(const Qp&) = delete;
  Qp& operator=(const Qp&) = delete;

  // RESET to INIT to RTR to RTS; any to ERR. EINVAL for another step or for attributes out of
  // range; nothing changes then. `attributes` count at INIT.
  Result<void> modify(QpState to, const QpAttributes& attributes = {});

  uint32_t number() const { return number_; }
  QpState state() const { return state_; }
  uint32_t pd() const { return init_.pd; }
  const QpAttributes& attributes() const { return attributes_; }
  const Owner& owner() const { return init_.owner; }
  Device& device() { return device_; }
  Port& port() { return port_; }
  Scheduler& scheduler();
  CompletionQueue& send_cq() { return *init_.send_cq; }
  CompletionQueue& receive_cq() { return *init_.receive_cq; }
  Requester& requester() { return requester_; }
  Responder& responder() { return responder_; }
  // IP, UDP and BTH as every packet of this connection begins.
  const wire::Headers& header_template() const { return header_template_; }

  void make_requester_ready();
  void make_responder_ready();
  // Work on memory has ended; a QP that was waiting for that to be destroyed may go.
  void memory_settled();
  bool memory_pending() const;
  // The QP is going: whoever made its completion queues takes them away, `sink` takes what still
  // ends.
  void disown_queues(CompletionQueue& sink) { init_.send_cq = init_.receive_cq = &sink; }
  // Queued requests end with kFlushed. Again is harmless.
  void enter_error();

 private:
  friend class Port;
  void fill_template();

  Device& device_;
  Port& port_;
  const uint32_t number_;
  QpInit init_;
  QpState state_ = QpState::kReset;
  QpAttributes attributes_;
  wire::Headers header_template_{};
  Requester requester_;
  Responder responder_;

  // In the port's lists.
  Qp* next_request_ = nullptr;
  Qp* next_response_ = nullptr;
  bool in_requests_ = false;
  bool in_responses_ = false;
};

}  // namespace rocefs
