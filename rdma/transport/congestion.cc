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
    : qp_(qp), reliable_(qp.reliable()), event_(event_of<&Congestion::on_time>(this)) {
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
  find_registers();
  if (now == reaction_) return;
  reaction_ = now;
  stop();
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
  if (signals_ != shown) publish();
}

// Lifts all limits: data that had to wait may go.
void Congestion::stop() {
  rp_.reset();
  limiter_.reset();
  window_ = kNoWindow;
  paced_ = reaction_ == Reaction::kPcc;
  set_waits(false);
  meter_.cancel();
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

// Sets the distance to the next packet by the rate. Time lost because the link was busy with others
// is caught up, so that rates hold among queue pairs that share a link; no more is saved up for a
// burst.
void Congestion::pace(const Packet& packet, TimeNs now) {
  const RpParameters& parameters = qp_.port().ecn().rp();
  uint64_t octets = packet.wire_length() + kEthernetOverhead;
  rp_.advance(parameters, line_bps(), now);
  paced_ = rp_.limited();
  if (!paced_) return publish();
  follow(static_cast<double>(octets) * 8e9 / rp_.rate_bps(), now);
  rp_.sent(parameters, line_bps(), octets);
  paced_ = rp_.limited();
  publish();
  wait(now);
}

// Paces by the window: so many octets of payload in a round trip.
void Congestion::pace_by_window(uint32_t octets, TimeNs now) {
  paced_window_ = std::max(window(now), 1u);
  if (paced_window_ == kNoWindow) return;
  auto rtt = static_cast<double>(qp_.host().registers().usual_rtt());
  follow(octets * rtt / paced_window_, now);
  wait(now);
}

// Puts the next packet `gap` nanoseconds behind the last.
void Congestion::follow(double gap, TimeNs now) {
  gap += remainder_;
  gap_ = static_cast<TimeNs>(gap);
  remainder_ = gap - static_cast<double>(gap_);
  TimeNs busy = static_cast<TimeNs>(kLinkTurn * 8e9 / line_bps());
  next_ = std::max(next_, now - std::max(gap_, busy)) + gap_;
}

void Congestion::set_waits(bool waits) {
  waits_ = waits;
  qp_.hold_data(waits && !acknowledged_requests());
}

// Waits until the packet may go or its limit may have changed: the timer may have raised the rate,
// the owner the window.
void Congestion::wait(TimeNs now) {
  set_waits(next_ > now);
  if (!waits_) return;
  TimeNs look = reaction_ == Reaction::kPcc ? kLookAfter : qp_.port().ecn().rp().timer;
  qp_.scheduler().at(event_, look > 0 ? std::min(next_, now + look) : next_);
}

// Ratio of the limit when the wait was computed to the limit now; 0 without a limit.
double Congestion::slower_before(TimeNs now) {
  if (reaction_ == Reaction::kPcc) {
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
  if (!waits_ && qp_.has_data()) qp_.make_data_ready();
}

bool Congestion::asks_rtt() const {
  if (!control_) return false;
  uint32_t probe = load(control_->probe);
  return probe != answered_ && !(meter_.running() && meter_.probe() == probe);
}

// Starts a measurement when none is running, or in place of one that answers an older probe.
void Congestion::measure(uint64_t psn, TimeNs now) {
  uint32_t probe = load(control_->probe);
  if (!meter_.running() || meter_.probe() != probe) meter_.start(psn, probe, now);
}

void Congestion::note_rtt(uint64_t next, TimeNs now) {
  std::optional<TimeNs> rtt = meter_.acknowledged(next, now);
  if (!rtt || !signals_) return;
  qp_.host().registers().note_rtt(*rtt);
  std::atomic_ref(signals_->rtt_ns).store(static_cast<uint64_t>(*rtt), std::memory_order_relaxed);
  answered_ = meter_.probe();
  std::atomic_ref(signals_->rtt_probe).store(answered_, std::memory_order_release);
}

void Congestion::publish_to(CongestionReading* reading) {
  reading_ = reading;
  publish();
}

double Congestion::rate_bps() const {
  if (rp_.limited()) return rp_.rate_bps();
  if (reaction_ != Reaction::kPcc || reliable_ || window_ == kNoWindow) return line_bps();
  auto rtt = static_cast<double>(qp_.host().registers().usual_rtt());
  return std::min(line_bps(), window_ * 8e9 / rtt);
}

void Congestion::publish() {
  if (!reading_ && !signals_) return;
  auto rate = static_cast<uint64_t>(std::llround(rate_bps()));
  if (signals_) std::atomic_ref(signals_->rate_bps).store(rate, std::memory_order_relaxed);
  if (!reading_) return;
  reading_->rate_bps.set(rate);
  reading_->window.set(reaction_ == Reaction::kCfr ? limiter_.window() : window_);
}

}  // namespace rocefs
