#include "rdma/congestion.h"

#include <algorithm>
#include <cmath>

#include "rdma/device.h"
#include "rdma/port.h"
#include "rdma/qp.h"
#include "rdma/traffic_class.h"

namespace rocefs {
namespace {

// Octets that a link may send for others before it is a queue pair's turn again.
constexpr double kLinkTurn = 8 * (kMaxMtu + 64);

}  // namespace

Congestion::Congestion(Qp& qp) : qp_(qp), event_(event_of<&Congestion::on_time>(this)) {
  refresh();
}

double Congestion::line_bps() const {
  return static_cast<double>(qp_.port().line_bps());
}

Reaction Congestion::choose() const {
  const Cfr& cfr = qp_.device().cfr();
  if (cfr.owned()) return Reaction::kOwner;
  if (cfr.enabled() && qp_.type() == QpType::kRc) return Reaction::kCfr;
  unsigned priorities = qp_.port().ecn().rp().priorities;
  return priorities >> priority_of_class(traffic_class_) & 1 ? Reaction::kRp : Reaction::kNone;
}

void Congestion::refresh() {
  Reaction now = choose();
  bool own_bits = (traffic_class_ & 3) != 0;
  ecn_ = now == Reaction::kNone || own_bits ? 0 : static_cast<uint8_t>(Ecn::kCapable0);
  if (now == reaction_) return;
  reaction_ = now;
  stop();
}

// Nothing limits any more; what had to wait may go.
void Congestion::stop() {
  rp_.reset();
  limiter_.reset();
  window_ = kNoWindow;
  paced_ = waits_ = false;
  next_ = gap_ = 0;
  remainder_ = 0;
  qp_.scheduler().cancel(event_);
  if (qp_.has_data()) qp_.make_data_ready();
  publish();
}

void Congestion::reset() {
  cnps_ = 0;
  traffic_class_ = 0;
  refresh();
  stop();
}

bool Congestion::receive_cnp(TimeNs now) {
  ++cnps_;
  switch (reaction_) {
    case Reaction::kNone:
      return false;
    case Reaction::kRp:
      rp_.receive_cnp(qp_.port().ecn().rp(), line_bps(), now);
      paced_ = rp_.limited();
      break;
    case Reaction::kCfr:
      limiter_.receive_cnp(qp_.attributes().path_mtu, now);
      window_ = limiter_.limits() ? limiter_.window() : kNoWindow;
      break;
    case Reaction::kOwner:
      break;
  }
  publish();
  return true;
}

uint32_t Congestion::window(TimeNs now) {
  if (reaction_ != Reaction::kCfr) return window_;
  uint32_t before = limiter_.window();
  limiter_.advance(qp_.attributes().path_mtu, now);
  if (limiter_.window() == before) return window_;
  window_ = limiter_.limits() ? limiter_.window() : kNoWindow;
  publish();
  return window_;
}

void Congestion::set_window(uint32_t octets) {
  if (reaction_ != Reaction::kOwner) return;
  window_ = octets;
  publish();
  qp_.make_data_ready();
}

// The packet after this one follows at the distance that the rate commands. What could not go in
// time because the link was busy with others is caught up with, so that rates hold among queue
// pairs that share a link; more than that is not saved up for a burst.
void Congestion::pace(const Packet& packet, TimeNs now) {
  const RpParameters& parameters = qp_.port().ecn().rp();
  uint64_t octets = packet.wire_length() + kEthernetOverhead;
  rp_.advance(parameters, line_bps(), now);
  paced_ = rp_.limited();
  if (!paced_) return publish();
  double exact = static_cast<double>(octets) * 8e9 / rp_.rate_bps() + remainder_;
  gap_ = static_cast<TimeNs>(exact);
  remainder_ = exact - static_cast<double>(gap_);
  TimeNs busy = static_cast<TimeNs>(kLinkTurn * 8e9 / line_bps());
  next_ = std::max(next_, now - std::max(gap_, busy)) + gap_;
  rp_.sent(parameters, line_bps(), octets);
  paced_ = rp_.limited();
  publish();
  if (next_ <= now) return;
  waits_ = true;
  wake(now);
}

// When the packet may go, or when the timer may have raised the rate.
void Congestion::wake(TimeNs now) {
  TimeNs timer = qp_.port().ecn().rp().timer;
  qp_.scheduler().at(event_, timer > 0 ? std::min(next_, now + timer) : next_);
}

// What is left of a wait is as much shorter as the rate has become higher: a packet that was sent
// at a trickle does not hold back for milliseconds what the timer allows to go.
void Congestion::on_time(TimeNs now) {
  if (next_ > now) {
    double before = rp_.rate_bps();
    rp_.advance(qp_.port().ecn().rp(), line_bps(), now);
    paced_ = rp_.limited();
    if (paced_) {
      next_ = now + static_cast<TimeNs>(static_cast<double>(next_ - now) *
                                        std::min(1.0, before / rp_.rate_bps()));
      if (next_ > now) return wake(now);
    }
    next_ = now;
  }
  waits_ = false;
  if (qp_.has_data()) qp_.make_data_ready();
}

void Congestion::publish_to(CongestionReading* reading) {
  reading_ = reading;
  publish();
}

void Congestion::publish() {
  if (!reading_) return;
  double rate = rp_.limited() ? rp_.rate_bps() : line_bps();
  reading_->rate_bps.set(static_cast<uint64_t>(std::llround(rate)));
  reading_->window.set(reaction_ == Reaction::kCfr ? limiter_.window() : window_);
}

}  // namespace rocefs
