// Congestion: the reaction of one queue pair to CNPs. At most one of these acts: the owner of the
// device's windows (PCC), else CFR's window limiter (RC), else DCQCN's RP where it is enabled for
// the priority. Data is sent as ECT(0) only while one of them acts.
//
// A window limits the requests of a reliable connection, which acknowledgements clock. A rate paces
// all data: requests and responses to READs, in every service. Responses to READs are not
// acknowledged: a window, the owner's or CFR's, paces them, so many octets in a usual round trip.
// The owner's paces UC and UD in the same way. The owner may set a rate besides, which paces all
// data. Where pacing is enabled (rdma/cc/pacing.h), a window also paces the requests that it
// limits, by the round trip that the queue pair measures itself. Core thread.
#pragma once

#include <cstdint>

#include "core/base/counter.h"
#include "core/loop/scheduler.h"
#include "rdma/cc/reaction_point.h"
#include "rdma/cc/rtt_meter.h"
#include "rdma/cc/window_limiter.h"
#include "rdma/packet/packet.h"
#include "rdma/transport/qp_events.h"
#include "rdma/uapi/registers.h"

namespace rocefs {

class QpContext;

enum class Reaction : uint8_t { kNone, kRp, kCfr, kPcc };

inline constexpr uint32_t kNoWindow = ROCEFS_NO_WINDOW;

// Written by the core, read by any thread.
struct CongestionReading {
  Counter rate_bps;  // Ethernet framing included; the link's rate without a limit
  Counter window;    // octets; kNoWindow without a window
};

class Congestion {
 public:
  explicit Congestion(QpContext& qp);

  Reaction reaction() const { return reaction_; }
  // ECN bits of data packets, for a traffic class that has none of its own.
  uint8_t ecn() const { return ecn_; }
  // Whether requests, or responses to READs, wait for their time. The queue pair is made ready when
  // it has come.
  bool waits(bool response) const { return waiting_ >> response & 1; }
  // Paces by a data packet of a request or of a response that has been emitted.
  void sent(const Packet& packet, bool response, TimeNs now) {
    if (!paced_) return;
    if (reaction_ == Reaction::kRp) return pace(packet, now);
    if (uint64_t rate = owner_rate(); rate > 0) return pace_by_owner(rate, packet, now);
    if (owner_rate_ > 0) end_owner_rate();
    bool acknowledged = reliable_ && !response;
    if (acknowledged ? paces_ : acts_by_window()) {
      pace_by_window(packet.payload.length, acknowledged, now);
    }
  }
  // Octets of requests that may be in flight; one packet always may be.
  bool has_window() const { return reaction_ == Reaction::kPcc || window_ != kNoWindow; }
  uint32_t window(TimeNs now);
  // Notes that the window holds a request back.
  void note_closed() { closed_ = true; }

  // Whether the next new packet of a request asks for an acknowledgement: the owner wants events or
  // a round trip, or a paced window has to open packet by packet. RC alone.
  bool asks_rtt() const;
  // Events of the measurement: a new packet that asks for an acknowledgement is sent; all PSNs
  // before `next` are acknowledged; a packet must be retransmitted.
  void request_sent(uint64_t psn, TimeNs now) {
    if (measures_) measure(psn, now);
  }
  void acknowledged(uint64_t next, TimeNs now) {
    if (meter_.running()) note_rtt(next, now);
  }
  void note_retransmission() { meter_.cancel(); }

  // Events for the owner of the windows.
  QpEvents& events() { return events_; }

  // Handles a CNP. Returns whether a reaction took it.
  bool receive_cnp(TimeNs now);
  // All CNPs received, whether or not a reaction took them.
  uint64_t cnps() const { return cnps_; }

  // Chooses the reaction anew: the settings, the traffic class or the queue pair's state may have
  // changed.
  void refresh();
  // Sets the traffic class of packets sent from now on.
  void set_traffic_class(uint8_t traffic_class) {
    if (traffic_class == traffic_class_) return;
    traffic_class_ = traffic_class;
    refresh();
  }
  // Returns to the initial state.
  void reset();
  // Keeps `reading` up to date, which outlives the queue pair; null ends it.
  void publish_to(CongestionReading* reading);

 private:
  // Bits of waiting_, by waits().
  static constexpr uint8_t kRequests = 1, kResponses = 2, kAllData = kRequests | kResponses;
  bool acts_by_window() const { return reaction_ == Reaction::kPcc || reaction_ == Reaction::kCfr; }
  uint8_t paced_data() const;
  Reaction choose() const;
  void find_registers();
  double line_bps() const;
  double rate_bps() const;
  void stop();
  void lift_waits();
  void pace(const Packet& packet, TimeNs now);
  uint64_t owner_rate() const;
  void pace_by_owner(uint64_t rate, const Packet& packet, TimeNs now);
  void end_owner_rate();
  void pace_by_window(uint32_t octets, bool acknowledged, TimeNs now);
  void set_gap(double gap);
  void follow(TimeNs saved, TimeNs now);
  TimeNs link_turn() const;
  void wait(TimeNs now);
  void set_waits(bool waits);
  double slower_before(TimeNs now);
  void measure(uint64_t psn, TimeNs now);
  void note_rtt(uint64_t next, TimeNs now);
  void smooth(TimeNs rtt);
  void on_time(TimeNs now);
  void publish();

  QpContext& qp_;
  const bool reliable_;
  Reaction reaction_ = Reaction::kNone;
  uint8_t ecn_ = 0;
  uint8_t traffic_class_ = 0;
  bool paced_ = false;
  bool paces_ = false;     // a window paces requests
  bool closed_ = false;    // and held the next one back
  bool measures_ = false;  // round trips: control_ or paces_
  uint8_t waiting_ = 0;
  double srtt_ns_ = 0;  // smoothed round trip while paces_; 0 before the first
  uint32_t window_ = kNoWindow;
  uint32_t paced_window_ = 0;  // window by which the wait was computed
  uint64_t owner_rate_ = 0;    // bit/s, by which the wait was computed; 0: no rate
  uint64_t cnps_ = 0;
  rocefs_qp_signals* signals_ = nullptr;        // while active; null without register pages
  const rocefs_qp_control* control_ = nullptr;  // while the windows have an owner
  TimeNs next_ = 0;                             // time of the next data packet
  double remainder_ = 0;                        // fraction of a nanosecond that next_ leaves out
  TimeNs gap_ = 0;                              // from the last packet to the next
  ReactionPoint rp_;
  WindowLimiter limiter_;
  RttMeter meter_;
  QpEvents events_;
  uint32_t answered_ = 0;  // newest probe that is answered
  CongestionReading* reading_ = nullptr;
  Event event_;
};

}  // namespace rocefs
