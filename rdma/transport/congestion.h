// Congestion: what one queue pair does about CNPs. Exactly one of these acts: whoever owns the
// windows of the device (PCC), else CFR's window limiter (RC), else DCQCN's RP where it is on for
// the priority. Data is sent as ECT(0) while something acts, and only then.
//
// A window binds the requests of a reliable connection, which acknowledgements clock. A rate paces
// all data: requests and responses to READs, whatever the service. What nothing acknowledges,
// responses to READs, UC and UD, the owner's window paces: so many octets in a usual round trip.
#pragma once

#include <cstdint>

#include "core/base/counter.h"
#include "core/loop/scheduler.h"
#include "rdma/cc/reaction_point.h"
#include "rdma/cc/rtt_meter.h"
#include "rdma/cc/window_limiter.h"
#include "rdma/packet/packet.h"
#include "rdma/uapi/registers.h"

namespace rocefs {

class QpContext;

enum class Reaction : uint8_t { kNone, kRp, kCfr, kPcc };

inline constexpr uint32_t kNoWindow = ROCEFS_NO_WINDOW;

// Written by the core, read by any thread.
struct CongestionReading {
  Counter rate_bps;  // Ethernet framing included; the link's where nothing limits it
  Counter window;    // octets; kNoWindow where nothing acts by windows
};

class Congestion {
 public:
  explicit Congestion(QpContext& qp);

  Reaction reaction() const { return reaction_; }
  // The ECN bits of data packets, for a traffic class that has none of its own.
  uint8_t ecn() const { return ecn_; }
  // Responses to READs wait for their time, as all data does but requests that a window binds: the
  // queue pair is made ready when it has come.
  bool responses_wait() const { return waits_; }
  // A data packet has been emitted, of a request or of a response.
  void sent(const Packet& packet, bool response, TimeNs now) {
    if (!paced_) return;
    if (reaction_ != Reaction::kPcc) return pace(packet, now);
    if (response || !acknowledged_requests()) pace_by_window(packet.payload.length, now);
  }
  // How many octets of requests may be in flight, of which one packet always may.
  bool has_window() const { return reaction_ == Reaction::kPcc || window_ != kNoWindow; }
  uint32_t window(TimeNs now);

  // Requests of RC while the windows are another's: the owner wants to know a round trip, so the
  // next new packet asks for an acknowledgement.
  bool asks_rtt() const;
  // A new packet that asks for one is sent; all before `next` are acknowledged; something must be
  // sent again.
  void request_sent(uint64_t psn, TimeNs now) {
    if (control_) measure(psn, now);
  }
  void acknowledged(uint64_t next, TimeNs now) {
    if (meter_.running()) note_rtt(next, now);
  }
  void note_retransmission() { meter_.cancel(); }

  // Whether something reacts.
  bool receive_cnp(TimeNs now);
  // All that came, whether or not something reacted.
  uint64_t cnps() const { return cnps_; }

  // What acts may have changed, or the traffic class has, or whether the queue pair is active.
  void refresh();
  // The traffic class of what is sent from now on.
  void set_traffic_class(uint8_t traffic_class) {
    if (traffic_class == traffic_class_) return;
    traffic_class_ = traffic_class;
    refresh();
  }
  // As if nothing had ever happened.
  void reset();
  // Keeps `reading` up to date, which outlives the queue pair; null ends it.
  void publish_to(CongestionReading* reading);

 private:
  bool acknowledged_requests() const { return reaction_ == Reaction::kPcc && reliable_; }
  Reaction choose() const;
  void find_registers();
  double line_bps() const;
  double rate_bps() const;
  void stop();
  void pace(const Packet& packet, TimeNs now);
  void pace_by_window(uint32_t octets, TimeNs now);
  void follow(double gap, TimeNs now);
  void wait(TimeNs now);
  void set_waits(bool waits);
  double slower_before(TimeNs now);
  void measure(uint64_t psn, TimeNs now);
  void note_rtt(uint64_t next, TimeNs now);
  void on_time(TimeNs now);
  void publish();

  QpContext& qp_;
  const bool reliable_;
  Reaction reaction_ = Reaction::kNone;
  uint8_t ecn_ = 0;
  uint8_t traffic_class_ = 0;
  bool paced_ = false;
  bool waits_ = false;
  uint32_t window_ = kNoWindow;
  uint32_t paced_window_ = 0;  // by which the wait was reckoned
  uint64_t cnps_ = 0;
  rocefs_qp_signals* signals_ = nullptr;        // while the queue pair is active, and there are any
  const rocefs_qp_control* control_ = nullptr;  // while somebody owns the windows
  TimeNs next_ = 0;                             // when the next data packet may be sent
  double remainder_ = 0;                        // nanoseconds that next_ leaves out
  TimeNs gap_ = 0;                              // between the last packet and the next
  ReactionPoint rp_;
  WindowLimiter limiter_;
  RttMeter meter_;
  uint32_t answered_ = 0;  // the probe that was
  CongestionReading* reading_ = nullptr;
  Event event_;
};

}  // namespace rocefs
