#include "rdma/transport/congestion.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>

#include "rdma/packet/traffic_class.h"
#include "rdma/transport/qp_context.h"
#include "rdma/wire/ethernet.h"

namespace rocefs {
namespace {

// Octets that a link may send for other queue pairs before it is one's turn again.
constexpr double kLinkTurn = 8 * (kMaxMtu + 64);

// Interval at which a paced queue pair looks whether the owner has opened its window.
constexpr TimeNs kLookAfter = 50 * kMicrosecond;

template <class T>
T load(const T& word, std::memory_order order = std::memory_order_relaxed) {
  return std::atomic_ref<T>(const_cast<T&>(word)).load(order);
}

}  // namespace

Congestion::Congestion(QpContext& qp)
    : qp_(qp), reliable_(qp.reliable()), events_(qp), event_(event_of<&Congestion::on_time>(this)) {
  refresh();
}

double Congestion::line_bps() const {
  return static_cast<double>(qp_.port().line_bps());
}

Reaction Congestion::choose() const {
  const Cfr& cfr = qp_.host().cfr();
  if (cfr.controlled()) return Reaction::kPcc;
  if (cfr.enabled() && qp_.reliable()) return Reaction::kCfr;
  unsigned priorities = qp_.port().ecn().rp().priorities;
  return priorities >> priority_of_class(traffic_class_) & 1 ? Reaction::kRp : Reaction::kNone;
}

void Congestion::refresh() {
  Reaction now = choose();
  bool own_bits = (traffic_class_ & 3) != 0;
  ecn_ = now == Reaction::kNone || own_bits ? 0 : static_cast<uint8_t>(Ecn::kCapable0);
  bool paces = qp_.host().pacing().enabled() && reliable_ &&
               (now == Reaction::kCfr || now == Reaction::kPcc);
  find_registers();
  measures_ = control_ || paces;
  bool same = now == reaction_;
  if (same && paces == paces_) return;
  reaction_ = now;
  paces_ = paces;
  same ? lift_waits() : stop();
}

// A queue pair that answers READs has no requests of its own to measure a round trip by: its window
// paces responses by the usual round trip, whether or not it paces requests.
uint8_t Congestion::paced_data() const {
  if (reaction_ == Reaction::kRp) return kAllData;
  uint8_t requests = paces_ || owner_rate_ > 0 || !reliable_ ? kRequests : 0;
  return acts_by_window() ? requests | kResponses : requests;
}

// Looks up the register lines. A probe of another queue pair, or of another owner, counts as
// answered.
void Congestion::find_registers() {
  const Registers& registers = qp_.host().registers();
  bool active = qp_.receives_packets();
  const rocefs_qp_control* before = std::exchange(control_, active && qp_.host().cfr().controlled()
                                                                ? registers.control_of(qp_.number())
                                                                : nullptr);
  rocefs_qp_signals* shown =
      std::exchange(signals_, active ? registers.signals_of(qp_.number()) : nullptr);
  if (!signals_) control_ = nullptr;
  if (control_ && control_ != before) {
    answered_ = load(control_->probe);
    std::atomic_ref(signals_->rtt_probe).store(answered_, std::memory_order_release);
  }
  events_.follow(control_, signals_);
  if (signals_ != shown) publish();
}

// Lifts all limits.
void Congestion::stop() {
  rp_.reset();
  limiter_.reset();
  window_ = kNoWindow;
  lift_waits();
}

// Lets data go that had to wait.
void Congestion::lift_waits() {
  paced_ = acts_by_window();
  set_waits(false);
  meter_.cancel();
  srtt_ns_ = 0;
  next_ = gap_ = 0;
  owner_rate_ = 0;
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
  if (signals_) std::atomic_ref(signals_->cnps).store(cnps_, std::memory_order_relaxed);
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
    case Reaction::kPcc:
      break;
  }
  publish();
  return true;
}

// PCC: the owner writes window and generation in one word, so that a window for an earlier queue
// pair of this number has no effect.
uint32_t Congestion::window(TimeNs now) {
  if (reaction_ == Reaction::kPcc) {
    uint64_t word = control_ ? load(control_->window) : 0;
    bool meant = control_ && word >> 32 == signals_->generation;
    uint32_t octets = meant ? static_cast<uint32_t>(word) : kNoWindow;
    if (std::exchange(window_, octets) != octets) publish();
    return window_;
  }
  if (reaction_ != Reaction::kCfr) return window_;
  uint32_t before = limiter_.window();
  limiter_.advance(qp_.attributes().path_mtu, now);
  if (limiter_.window() == before) return window_;
  window_ = limiter_.limits() ? limiter_.window() : kNoWindow;
  publish();
  return window_;
}

// Sets the distance to the next packet by the rate.
void Congestion::pace(const Packet& packet, TimeNs now) {
  const RpParameters& parameters = qp_.port().ecn().rp();
  uint64_t octets = packet.wire_length() + kEthernetOverhead;
  rp_.advance(parameters, line_bps(), now);
  paced_ = rp_.limited();
  if (!paced_) return publish();
  set_gap(static_cast<double>(octets) * 8e9 / rp_.rate_bps());
  follow(std::max(gap_, link_turn()), now);
  rp_.sent(parameters, line_bps(), octets);
  paced_ = rp_.limited();
  publish();
  wait(now);
}

// Bound to this queue pair in the same way as the window.
uint64_t Congestion::owner_rate() const {
  if (reaction_ != Reaction::kPcc || !control_) return 0;
  uint64_t word = load(control_->rate);
  if (word >> 32 != signals_->generation) return 0;
  return static_cast<uint32_t>(word) * uint64_t{ROCEFS_RATE_UNIT};
}

void Congestion::pace_by_owner(uint64_t rate, const Packet& packet, TimeNs now) {
  if (std::exchange(owner_rate_, rate) != rate) publish();
  auto octets = static_cast<double>(packet.wire_length() + kEthernetOverhead);
  set_gap(octets * 8e9 / static_cast<double>(owner_rate_));
  follow(std::max(gap_, link_turn()), now);
  wait(now);
}

void Congestion::end_owner_rate() {
  owner_rate_ = 0;
  publish();
}

// Paces by the window: so many octets of payload in a round trip. A request that was late because
// the window was closed moves those behind it: caught up, the delay would come again in each round
// trip, because the window has just as many octets as the round trip takes.
void Congestion::pace_by_window(uint32_t octets, bool acknowledged, TimeNs now) {
  bool closed = std::exchange(closed_, false);
  paced_window_ = std::max(window(now), 1u);
  if (paced_window_ == kNoWindow || (acknowledged && srtt_ns_ == 0)) return;
  double rtt = acknowledged ? srtt_ns_ : static_cast<double>(qp_.host().registers().usual_rtt());
  set_gap(octets * rtt / paced_window_);
  if (acknowledged) {
    follow(closed ? 0 : gap_, now);
  } else {
    follow(std::max(gap_, link_turn()), now);
  }
  wait(now);
}

// Time that the link may give to others before it is a queue pair's turn again.
TimeNs Congestion::link_turn() const {
  return static_cast<TimeNs>(kLinkTurn * 8e9 / line_bps());
}

// Sets the distance from the last packet to the next, in nanoseconds.
void Congestion::set_gap(double gap) {
  gap += remainder_;
  gap_ = static_cast<TimeNs>(gap);
  remainder_ = gap - static_cast<double>(gap_);
}

// Puts the next packet behind the last. `saved` is the time that may be caught up when the link was
// busy with others, so that rates hold among queue pairs that share a link.
void Congestion::follow(TimeNs saved, TimeNs now) {
  next_ = std::max(next_, now - saved) + gap_;
}

void Congestion::set_waits(bool waits) {
  waiting_ = waits ? paced_data() : 0;
  qp_.hold_data(waiting_ == kAllData);
}

// Waits until the packet may go or its limit may have changed: the timer may have raised the rate,
// the owner the window.
void Congestion::wait(TimeNs now) {
  set_waits(next_ > now);
  if (waiting_ == 0) return;
  TimeNs look = reaction_ == Reaction::kRp ? qp_.port().ecn().rp().timer : kLookAfter;
  qp_.scheduler().at(event_, look > 0 ? std::min(next_, now + look) : next_);
}

// Ratio of the limit when the wait was computed to the limit now; 0 without a limit.
double Congestion::slower_before(TimeNs now) {
  if (owner_rate_ > 0) {
    auto before = static_cast<double>(std::exchange(owner_rate_, owner_rate()));
    publish();
    return owner_rate_ > 0 ? before / static_cast<double>(owner_rate_) : 0;
  }
  if (reaction_ != Reaction::kRp) {
    double before = paced_window_;
    paced_window_ = std::max(window(now), 1u);
    return paced_window_ == kNoWindow ? 0 : before / paced_window_;
  }
  double before = rp_.rate_bps();
  rp_.advance(qp_.port().ecn().rp(), line_bps(), now);
  paced_ = rp_.limited();
  return paced_ ? before / rp_.rate_bps() : 0;
}

// Shortens the rest of a wait by the ratio by which the rate has grown: a packet sent at a very low
// rate does not hold back the next one for milliseconds.
void Congestion::on_time(TimeNs now) {
  if (next_ > now) {
    double left = static_cast<double>(next_ - now) * std::min(1.0, slower_before(now));
    next_ = now + static_cast<TimeNs>(left);
  }
  wait(now);
  if (waiting_ == 0 && qp_.has_data()) qp_.make_data_ready();
}

bool Congestion::asks_rtt() const {
  if (!measures_) return false;
  if (paces_ && (window_ != kNoWindow || !meter_.running())) return true;
  if (!control_) return false;
  if (events_.wanted()) return true;
  uint32_t probe = load(control_->probe);
  return probe != answered_ && !(meter_.running() && meter_.probe() == probe);
}

// Starts a measurement when none is running, or in place of one that answers an older probe.
void Congestion::measure(uint64_t psn, TimeNs now) {
  uint32_t probe = control_ ? load(control_->probe) : 0;
  if (!meter_.running() || meter_.probe() != probe) meter_.start(psn, probe, now);
}

void Congestion::note_rtt(uint64_t next, TimeNs now) {
  std::optional<TimeNs> rtt = meter_.acknowledged(next, now);
  if (!rtt) return;
  if (paces_) smooth(*rtt);
  qp_.host().registers().note_rtt(*rtt);
  if (!control_) return;
  std::atomic_ref(signals_->rtt_ns).store(static_cast<uint64_t>(*rtt), std::memory_order_relaxed);
  answered_ = meter_.probe();
  std::atomic_ref(signals_->rtt_probe).store(answered_, std::memory_order_release);
}

// The smoothed round trip of RFC 6298.
void Congestion::smooth(TimeNs rtt) {
  auto measured = static_cast<double>(std::max<TimeNs>(rtt, 1));
  srtt_ns_ = srtt_ns_ == 0 ? measured : srtt_ns_ + (measured - srtt_ns_) / 8;
  publish();
}

void Congestion::publish_to(CongestionReading* reading) {
  reading_ = reading;
  publish();
}

double Congestion::rate_bps() const {
  if (owner_rate_ > 0) return std::min(line_bps(), static_cast<double>(owner_rate_));
  if (rp_.limited()) return rp_.rate_bps();
  if (window_ == kNoWindow || (reliable_ && srtt_ns_ == 0)) return line_bps();
  double rtt = reliable_ ? srtt_ns_ : static_cast<double>(qp_.host().registers().usual_rtt());
  return std::min(line_bps(), window_ * 8e9 / rtt);
}

void Congestion::publish() {
  if (!reading_ && !signals_) return;
  auto rate = static_cast<uint64_t>(std::llround(rate_bps()));
  if (signals_) {
    auto line = static_cast<uint64_t>(line_bps());
    std::atomic_ref(signals_->rate_bps).store(rate, std::memory_order_relaxed);
    std::atomic_ref(signals_->line_bps).store(line, std::memory_order_relaxed);
    std::atomic_ref(signals_->window).store(window_, std::memory_order_relaxed);
  }
  if (!reading_) return;
  reading_->rate_bps.set(rate);
  reading_->window.set(reaction_ == Reaction::kCfr ? limiter_.window() : window_);
}

}  // namespace rocefs
