// Congestion: what one queue pair does about CNPs. Exactly one of these acts: whoever owns the
// windows of the device (PCC), else CFR's window limiter (RC), else DCQCN's RP where it is on for
// the priority. Data is sent as ECT(0) while something acts, and only then.
//
// A window binds the requests of a reliable connection, which acknowledgements clock. A rate paces
// all data: requests and responses to READs, whatever the service.
#pragma once

#include <cstdint>

#include "core/counter.h"
#include "core/scheduler.h"
#include "rdma/packet.h"
#include "rdma/reaction_point.h"
#include "rdma/window_limiter.h"

namespace rocefs {

class Qp;

enum class Reaction : uint8_t { kNone, kRp, kCfr, kOwner };

inline constexpr uint32_t kNoWindow = 0xffffffff;

// Written by the core, read by any thread.
struct CongestionReading {
  Counter rate_bps;  // Ethernet framing included; the link's where nothing limits it
  Counter window;    // octets; kNoWindow where nothing acts by windows
};

class Congestion {
 public:
  explicit Congestion(Qp& qp);

  Reaction reaction() const { return reaction_; }
  // The ECN bits of data packets, for a traffic class that has none of its own.
  uint8_t ecn() const { return ecn_; }
  // Data waits for its time; the queue pair is made ready when it has come.
  bool waits() const { return waits_; }
  // A data packet has been emitted.
  void sent(const Packet& packet, TimeNs now) {
    if (paced_) pace(packet, now);
  }
  // How many octets of requests may be in flight, of which one packet always may.
  bool has_window() const { return window_ != kNoWindow; }
  uint32_t window(TimeNs now);
  // Between packets as rare as now, whether `packets` of them take longer than `patience`.
  bool slow(uint32_t packets, TimeNs patience) const {
    return paced_ && static_cast<TimeNs>(packets) * gap_ > patience;
  }

  // Whether something reacts.
  bool receive_cnp(TimeNs now);
  // All that came, whether or not something reacted.
  uint64_t cnps() const { return cnps_; }
  // Octets, for whoever owns the windows; nothing happens otherwise.
  void set_window(uint32_t octets);

  // What acts may have changed, or the traffic class has.
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
  Reaction choose() const;
  double line_bps() const;
  void stop();
  void pace(const Packet& packet, TimeNs now);
  void wake(TimeNs now);
  void on_time(TimeNs now);
  void publish();

  Qp& qp_;
  Reaction reaction_ = Reaction::kNone;
  uint8_t ecn_ = 0;
  uint8_t traffic_class_ = 0;
  bool paced_ = false;
  bool waits_ = false;
  uint32_t window_ = kNoWindow;
  uint64_t cnps_ = 0;
  TimeNs next_ = 0;       // when the next data packet may be sent
  double remainder_ = 0;  // nanoseconds that next_ leaves out
  TimeNs gap_ = 0;        // between the last packet and the next
  ReactionPoint rp_;
  WindowLimiter limiter_;
  CongestionReading* reading_ = nullptr;
  Event event_;
};

}  // namespace rocefs
