// Responder: the receiving half of a reliable connection. It takes request packets in PSN order,
// asks memory to place their payload, and acknowledges what is placed. Sans-IO.
#pragma once

#include <cstdint>
#include <deque>

#include "rdma/memory.h"
#include "rdma/packet.h"
#include "rdma/verbs.h"
#include "rdma/work_queue.h"

namespace rocefs {

class Qp;

class Responder final : public MemoryListener {
 public:
  Responder(Qp& qp, size_t depth);
  ~Responder() override;

  // At the transition to RTR.
  void start(uint32_t psn);
  // ENOMEM when the receive queue is full.
  Result<void> post(const ReceiveRequest& request);

  // A request packet that the port has checked. Takes the packet.
  void receive(Packet* packet, const wire::Parsed& parsed, TimeNs now);
  // The acknowledge packet that is due; null if none is.
  Packet* emit();
  // The QP has entered the error state. A NAK that is due is still sent.
  void flush();

  void memory_done(uint64_t ticket, bool ok) override;
  // Whether memory still works for this QP: it may not be destroyed yet.
  bool memory_pending() const { return pending_writes_ > 0; }

 private:
  // What the packet that has just arrived asks for, and what became of it.
  enum class Verdict { kAccept, kDrop, kNak };
  // A step of the reply that waits for memory: steps are taken in PSN order.
  struct Step {
    Packet* packet = nullptr;  // kept while its payload is being placed
    uint64_t psn = 0;
    bool placed = true;
    bool failed = false;
    bool acknowledge = false;
    bool message_end = false;
    bool consumes_receive = false;
    uint8_t nak = 0;  // a syndrome instead of an acknowledgement
    Completion completion;
  };
  // The message that is being received.
  struct Message {
    bool active = false;
    bool write = false;
    uint64_t remaining = 0;  // a write's bytes that are still to come
    uint64_t received = 0;   // bytes so far
    uint32_t region_index = 0;
    uint32_t region_generation = 0;
    uint64_t region_offset = 0;  // of the next byte
    ReceiveRequest receive;
  };

  Verdict judge(const wire::Parsed& parsed, const wire::OpcodeInfo& info, Step& step);
  Verdict begin_message(const wire::Parsed& parsed, const wire::OpcodeInfo& info, Step& step);
  Verdict begin_write(const wire::Reth& reth, Step& step);
  Verdict begin_send(Step& step);
  Verdict check_length(const wire::Parsed& parsed, const wire::OpcodeInfo& info, Step& step);
  Verdict refuse(Step& step, uint8_t syndrome);
  void take_out_of_order(uint64_t psn);
  void place(Packet* packet, Step& step);
  void finish_message(Step& step);
  void end_receive(Step& step, WcStatus status);
  Completion receive_completion(const ReceiveRequest& request, WcStatus status);
  void flush_one(const ReceiveRequest& request);
  void add_step(Step step);
  void take_steps();
  void take_step(Step& step);

  Qp& qp_;
  WorkQueue<ReceiveRequest> queue_;
  Message message_;
  uint64_t expected_ = 0;         // the PSN that must come next
  uint64_t retired_ = 0;          // one past the highest PSN that is placed and may be acknowledged
  uint32_t messages_ = 0;         // MSN, 24 bits
  bool nak_outstanding_ = false;  // silence until the expected PSN comes (IBTA C9-113)
  bool acknowledge_due_ = false;
  bool nak_due_ = false;
  uint8_t nak_syndrome_ = 0;
  uint64_t nak_psn_ = 0;

  std::deque<Step> steps_;
  uint64_t first_step_ = 0;  // the number of steps_.front(): a ticket
  uint32_t pending_writes_ = 0;
};

}  // namespace rocefs
