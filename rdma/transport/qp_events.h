// QpEvents: what responses tell the owner of the windows, where its algorithm asks for that: events
// in the engine's register page (rdma/uapi/registers.h), and the options of data packets that fill
// them (rdma/wire/telemetry.h). Core thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "rdma/packet/packet.h"
#include "rdma/uapi/registers.h"

namespace rocefs {

class QpContext;

class QpEvents {
 public:
  explicit QpEvents(QpContext& qp) : qp_(qp) {}

  // Sets the queue pair's register lines, null where there are none.
  void follow(const rocefs_qp_control* control, const rocefs_qp_signals* signals) {
    control_ = control;
    signals_ = signals;
  }
  bool wanted() const { return wants() != 0; }

  // Whether begin() was called since events are wanted: it says what is acknowledged already.
  bool begun() const { return told_ != kNothing; }
  void begin(uint64_t acked) { told_ = acked; }
  // Length of the options of the next data packet; 0: none.
  size_t option_len() {
    uint32_t wants = this->wants();
    if (wants == 0) {
      told_ = kNothing;
      return 0;
    }
    return wants & ROCEFS_WANTS_HOPS ? wire::kMaxOptionsLen : wire::kOptionsLen;
  }
  // Adds the options to a packet whose headers count them.
  static void add_options(Packet& packet, size_t length, TimeNs now) {
    wire::Telemetry(attach_options(packet, length)).begin(static_cast<uint32_t>(now));
  }

  // Octets of the requests that are acknowledged, and that are sent up to the next packet.
  struct Progress {
    uint64_t acked, sent;
  };
  void note_response(rocefs_qp_event_kind kind, const Packet& response, const Progress& progress,
                     TimeNs now);
  void note_timeout(const Progress& progress, TimeNs now);

 private:
  uint32_t wants() const {
    if (!control_) return 0;
    auto& word = const_cast<uint32_t&>(control_->wants);
    return std::atomic_ref(word).load(std::memory_order_relaxed);
  }
  rocefs_qp_event event(rocefs_qp_event_kind kind, const Progress& progress, TimeNs now) const;

  static constexpr uint64_t kNothing = ~uint64_t{0};

  QpContext& qp_;
  uint64_t told_ = kNothing;  // acknowledged octets that events have told of
  const rocefs_qp_control* control_ = nullptr;
  const rocefs_qp_signals* signals_ = nullptr;
};

}  // namespace rocefs
