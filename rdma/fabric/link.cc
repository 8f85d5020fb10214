#include "rdma/fabric/link.h"

#include <algorithm>
#include <utility>

#include "core/base/prefetch.h"
#include "rdma/packet/trace_hash.h"

namespace rocefs {

Link::Link(std::string name, uint32_t id, const LinkParameters& parameters, uint64_t seed,
           Scheduler& scheduler, TraceHash& trace)
    : transmit_(event_of<&Link::on_transmit, &Link::prefetch_transmit>(this)),
      scheduler_(scheduler),
      parameters_(parameters),
      deliver_(event_of<&Link::on_deliver, &Link::prefetch_deliver>(this)),
      trace_(trace),
      id_(id),
      name_(std::move(name)),
      seed_(seed),
      rng_(seed, "link " + name_),
      pause_frame_(event_of<&Link::on_pause_frame>(this)) {
  up_ = parameters_.up;
}

void Link::reset() {
  scheduler_.cancel(transmit_);
  scheduler_.cancel(deliver_);
  in_flight_.clear();
  forget_pauses();
  free_at_ = last_arrival_ = 0;
  remainder_ = 0;
  rng_ = Rng(seed_, "link " + name_);
}

void Link::kick() {
  if (pulling_) {
    kicked_ = true;
    return;
  }
  if (!transmit_.scheduled()) scheduler_.at(transmit_, free_at_);
}

double Link::serialization_ns(uint64_t octets) const {
  return static_cast<double>((octets + kEthernetOverhead) * 8) * 1e9 /
         static_cast<double>(parameters_.rate_bps);
}

// Whole nanoseconds; the fraction is carried over to the next packet, so that the rate is exact.
// The last division is cached: most packets have the length of the one before.
TimeNs Link::serialize(uint64_t octets) {
  if (octets != divided_.octets) {
    uint64_t scaled = (octets + kEthernetOverhead) * 8 * 1'000'000'000;
    divided_ = {octets, scaled / parameters_.rate_bps, scaled % parameters_.rate_bps};
  }
  remainder_ += divided_.remainder;
  bool carries = remainder_ >= parameters_.rate_bps;
  if (carries) remainder_ -= parameters_.rate_bps;
  return static_cast<TimeNs>(divided_.whole + carries);
}

void Link::prefetch_transmit(int step) const {
  if (step > 0) return source_->prefetch(step);
  prefetch_two_lines(source_);
  __builtin_prefetch(&parameters_);
  __builtin_prefetch(&in_flight_, 1);
}

void Link::prefetch_deliver(int step) const {
  const Packet& packet = *in_flight_.front();
  if (step > 0) {
    if (step == 1 && packet.next) __builtin_prefetch(packet.next);
    return sink_->prefetch(packet, step);
  }
  rocefs::prefetch(packet);
  prefetch_two_lines(sink_);
}

void Link::on_transmit(TimeNs now) {
  pulling_ = true;
  PacketPtr packet(source_->pull(now));
  pulling_ = false;
  bool kicked = std::exchange(kicked_, false);
  if (!packet) {
    if (kicked) scheduler_.at(transmit_, now);
    return;
  }
  if (tap_ && parameters_.capture) tap_->transmitted(*this, *packet, now);
  const uint64_t length = packet->wire_length();
  counters_.packets.add();
  counters_.bytes.add(length);
  free_at_ = now + serialize(length);
  if (kicked || source_->ready()) scheduler_.at(transmit_, free_at_);
  if (rng_.chance(parameters_.loss) || !up()) return lose(std::move(packet), now);
  packet->arrival = std::max(free_at_ + parameters_.delay_ns, last_arrival_);
  last_arrival_ = packet->arrival;
  if (!deliver_.scheduled()) scheduler_.at(deliver_, packet->arrival);
  in_flight_.push(std::move(packet));
}

void Link::on_deliver(TimeNs now) {
  PacketPtr packet = in_flight_.pop();
  if (!in_flight_.empty()) scheduler_.at(deliver_, in_flight_.front()->arrival);
  trace_.carried(now, id_, *packet);
  sink_->receive(packet.release(), now);
}

void Link::send_pause(size_t priority, bool pause) {
  if (!up()) return;
  uint64_t octets_ns = kPauseOctets * 8 * 1'000'000'000;
  auto transmission =
      static_cast<TimeNs>((octets_ns + parameters_.rate_bps - 1) / parameters_.rate_bps);
  TimeNs begin = std::max(scheduler_.now(), free_at_);
  if (tap_ && parameters_.capture) tap_->pause_sent(*this, priority, pause, begin);
  last_pause_ = std::max(begin + transmission + parameters_.delay_ns, last_pause_);
  pause_frames_.push({last_pause_, static_cast<uint8_t>(priority), pause});
  if (!pause_frame_.scheduled()) scheduler_.at(pause_frame_, last_pause_);
}

void Link::on_pause_frame(TimeNs) {
  PauseFrame frame = pause_frames_.pop();
  if (!pause_frames_.empty()) scheduler_.at(pause_frame_, pause_frames_.front().arrival);
  if (reverse_) reverse_->take_pause(frame);
}

void Link::take_pause(const PauseFrame& frame) {
  PauseState& state = pause_states_[frame.priority];
  state.set(frame.pause, scheduler_.now());
  auto bit = static_cast<uint8_t>(1u << frame.priority);
  if (frame.pause) {
    state.counters.pause_received.add();
    paused_ |= bit;
    return;
  }
  paused_ &= static_cast<uint8_t>(~bit);
  kick();
}

void Link::forget_pauses() {
  scheduler_.cancel(pause_frame_);
  pause_frames_.clear();
  last_pause_ = 0;
  paused_ = 0;
  for (PauseState& state : pause_states_) state.set(false, scheduler_.now());
}

void Link::lose(PacketPtr&& packet, TimeNs now) {
  trace_.carried(now, id_, *packet);
  counters_.lost.add();
  counters_.lost_bytes.add(packet->wire_length());
}

LinkParameters Link::parameters_of(std::span<const KnobValue> values) {
  auto number = [&](size_t index) { return std::get<uint64_t>(values[index]); };
  LinkParameters next;
  next.rate_bps = number(knob_index(kLinkKnobs, "rate"));
  next.delay_ns = static_cast<TimeNs>(number(knob_index(kLinkKnobs, "delay")));
  next.loss = std::get<double>(values[knob_index(kLinkKnobs, "loss")]);
  next.buffer_bytes = number(knob_index(kLinkKnobs, "buffer"));
  next.ingress_buffer_bytes = number(knob_index(kLinkKnobs, "ingress_buffer"));
  next.up = number(knob_index(kLinkKnobs, "state")) == 1;
  next.capture = number(knob_index(kLinkKnobs, "capture")) == 1;
  return next;
}

void Link::apply(std::span<const KnobValue> values) {
  LinkParameters next = parameters_of(values);
  if (next.rate_bps != parameters_.rate_bps) {
    remainder_ = 0;
    divided_ = {};
  }
  bool before = up();
  parameters_ = next;
  up_ = parameters_.up && carrier_;
  for (const auto& listener : parameter_listeners_) listener();
  if (before != up()) turned();
}

void Link::set_carrier(bool carrier) {
  bool before = up();
  carrier_ = carrier;
  up_ = parameters_.up && carrier_;
  if (before != up()) turned();
}

// The direction has gone up or down.
void Link::turned() {
  for (Link* link : {this, reverse_}) {
    if (!link) continue;
    bool waits = link->paused_ != 0;
    link->forget_pauses();
    if (waits) link->kick();
  }
  for (const auto& listener : state_listeners_) listener();
  if (up()) return;
  scheduler_.cancel(deliver_);
  while (PacketPtr packet = in_flight_.pop()) lose(std::move(packet), scheduler_.now());
}

std::vector<KnobValue> Link::values_of(const LinkParameters& parameters) {
  return {parameters.rate_bps,
          static_cast<uint64_t>(parameters.delay_ns),
          parameters.loss,
          parameters.buffer_bytes,
          parameters.ingress_buffer_bytes,
          uint64_t{parameters.up},
          uint64_t{parameters.capture}};
}

}  // namespace rocefs
