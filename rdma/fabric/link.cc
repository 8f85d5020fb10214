#include "rdma/fabric/link.h"

#include <algorithm>
#include <utility>

#include "core/base/prefetch.h"
#include "rdma/fabric/region_crossings.h"
#include "rdma/packet/trace_hash.h"

namespace rocefs {

Link::Link(std::string name, uint32_t id, const LinkParameters& parameters, uint64_t seed,
           const LinkSides& sides)
    : rest_(std::make_unique<Rest>(std::move(name), seed, *this)),
      parameters_(parameters),
      transmit_(event_of<&Link::on_transmit, &Link::prefetch_transmit>(this)),
      sides_(sides),
      deliver_(event_of<&Link::on_deliver, &Link::prefetch_deliver>(this)),
      id_(id),
      far_sides_(sides) {
  static_assert(sizeof(Link) == 6 * 64);
  note_parameters();
}

void Link::note_parameters() {
  if (rate_bps_ != parameters_.rate_bps) {
    remainder_ = 0;
    divided_octets_ = 0;
  }
  rate_bps_ = parameters_.rate_bps;
  delay_ns_ = parameters_.delay_ns;
  lossy_ = parameters_.loss > 0;
  up_ = parameters_.up && carrier_;
  captures_ = rest_->tap && parameters_.capture;
}

void Link::reset() {
  sides_.scheduler.cancel(transmit_);
  sides_.far_scheduler.cancel(deliver_);
  in_flight_.clear();
  pulling_ = kicked_ = false;
  forget_pauses();
  free_at_ = 0;
  rest_->last_crossed = 0;
  remainder_ = 0;
  rest_->rng = rest_->first_rng();
}

void Link::clear_counters() {
  zero_counters(kLinkCounters, counters_);
  zero_counters(kLinkLosses, rest_->losses);
  for (PauseState& state : rest_->pause_states) {
    zero_counters(kPauseCounters, state.counters);
  }
}

void Link::kick() {
  if (pulling_) {
    kicked_ = true;
    return;
  }
  if (!transmit_.scheduled()) sides_.scheduler.at(transmit_, free_at_);
}

double Link::serialization_ns(uint64_t octets) const {
  return static_cast<double>((octets + kEthernetOverhead) * 8) * 1e9 /
         static_cast<double>(parameters_.rate_bps);
}

// Whole nanoseconds; the fraction is carried over to the next packet, so that the rate is exact.
// The last division is cached: most packets have the length of the one before.
TimeNs Link::serialize(uint64_t octets) {
  if (octets != divided_octets_) {
    uint64_t scaled = (octets + kEthernetOverhead) * 8 * 1'000'000'000;
    divided_octets_ = static_cast<uint16_t>(octets);
    divided_ns_ = static_cast<uint32_t>(scaled / rate_bps_);
    divided_remainder_ = scaled % rate_bps_;
  }
  remainder_ += divided_remainder_;
  bool carries = remainder_ >= rate_bps_;
  if (carries) remainder_ -= rate_bps_;
  return TimeNs{divided_ns_} + carries;
}

void Link::prefetch_transmit(int step) const {
  if (step > 0) return source_->prefetch(step);
  __builtin_prefetch(source_, 1);
  prefetch_two_lines(&deliver_);
  if (!sides_.crossings) in_flight_.prefetch();
}

void Link::prefetch_deliver(int step) const {
  const Packet& packet = *in_flight_.front();
  if (step > 0) {
    const Packet* second = step == 1 ? in_flight_.second() : nullptr;
    if (second) __builtin_prefetch(second);
    return sink_->prefetch(packet, step);
  }
  rocefs::prefetch(packet);
  prefetch_two_lines(sink_);
  in_flight_.prefetch();
}

void Link::on_transmit(TimeNs now) {
  pulling_ = true;
  PacketPtr packet(source_->pull(now));
  pulling_ = false;
  const bool kicked = kicked_;
  kicked_ = false;
  if (!packet) {
    if (kicked) sides_.scheduler.at(transmit_, now);
    return;
  }
  if (captures_) rest_->tap->transmitted(*this, *packet, now);
  const uint64_t length = packet->wire_length();
  counters_.packets.add();
  counters_.bytes.add(length);
  free_at_ = now + serialize(length);
  if (kicked || source_->ready()) sides_.scheduler.at(transmit_, free_at_);
  const bool lost = lossy_ && rest_->rng.chance(parameters_.loss);
  if (lost || !up()) return lose(std::move(packet), now);
  const TimeNs arrival = free_at_ + delay_ns_;
  if (sides_.crossings) return sides_.crossings->add(*this, std::move(packet), arrival);
  arrive(std::move(packet), arrival);
}

// The packet is due at the far end then, but not before an earlier one.
inline void Link::arrive(PacketPtr&& packet, TimeNs arrival) {
  if (in_flight_.empty()) {
    far_sides_.far_scheduler.at(deliver_, arrival);
  } else {
    arrival = std::max(arrival, in_flight_.more() ? in_flight_.last_arrival() : deliver_.due());
  }
  in_flight_.push(std::move(packet), arrival);
}

void Link::on_deliver(TimeNs now) {
  PacketPtr packet = in_flight_.pop();
  if (TimeNs next = in_flight_.advance(); next != kNever)
    far_sides_.far_scheduler.at(deliver_, next);
  far_sides_.far_trace.carried(now, id_, *packet);
  sink_->receive(packet.release(), now);
}

void Link::send_pause(size_t priority, bool pause) {
  if (!up()) return;
  uint64_t octets_ns = kPauseOctets * 8 * 1'000'000'000;
  auto transmission =
      static_cast<TimeNs>((octets_ns + parameters_.rate_bps - 1) / parameters_.rate_bps);
  TimeNs begin = std::max(sides_.scheduler.now(), free_at_);
  if (captures_) rest_->tap->pause_sent(*this, priority, pause, begin);
  rest_->last_pause = std::max(begin + transmission + parameters_.delay_ns, rest_->last_pause);
  const PauseFrame frame{rest_->last_pause, static_cast<uint8_t>(priority), pause};
  if (sides_.crossings) return sides_.crossings->add(*this, frame);
  arrive(frame);
}

void Link::arrive(const PauseFrame& frame) {
  rest_->pause_frames.push(frame);
  if (!rest_->pause_frame.scheduled()) {
    sides_.far_scheduler.at(rest_->pause_frame, frame.arrival);
  }
}

void Link::take(Crossing& crossing) {
  if (crossing.packet) {
    arrive(std::move(crossing.packet), crossing.arrival);
  } else {
    arrive(crossing.pause);
  }
}

// A packet that its core has learned of late delays those behind it: no more arrive in any time
// than the link carries, as the far end's buffers expect.
void Link::take(PacketPtr&& crossed) {
  if (is_pause(*crossed)) {
    return arrive(PauseFrame{crossed->arrival, crossed->header[0], crossed->header[1] != 0});
  }
  const auto spacing = static_cast<TimeNs>(serialization_ns(crossed->wire_length()));
  const TimeNs earliest = std::max(crossed->arrival, sides_.far_scheduler.now());
  rest_->last_crossed = std::max(earliest, rest_->last_crossed + spacing);
  arrive(std::move(crossed), rest_->last_crossed);
}

void Link::hold() {
  pulling_ = true;
  sides_.scheduler.cancel(transmit_);
}

void Link::go_on() {
  pulling_ = kicked_ = false;
  kick();
}

void Link::on_pause_frame(TimeNs) {
  PauseFrame frame = rest_->pause_frames.pop();
  if (!rest_->pause_frames.empty())
    sides_.far_scheduler.at(rest_->pause_frame, rest_->pause_frames.front().arrival);
  if (rest_->reverse) rest_->reverse->take_pause(frame);
}

void Link::take_pause(const PauseFrame& frame) {
  PauseState& state = rest_->pause_states[frame.priority];
  state.set(frame.pause, sides_.scheduler.now());
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
  sides_.far_scheduler.cancel(rest_->pause_frame);
  rest_->pause_frames.clear();
  if (sides_.crossings) sides_.crossings->drop_pauses(*this);
  rest_->last_pause = 0;
  paused_ = 0;
  for (PauseState& state : rest_->pause_states) state.set(false, sides_.scheduler.now());
}

void Link::lose(PacketPtr&& packet, TimeNs now) {
  sides_.trace.carried(now, id_, *packet);
  rest_->losses.lost.add();
  rest_->losses.lost_bytes.add(packet->wire_length());
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
  bool before = up();
  parameters_ = parameters_of(values);
  note_parameters();
  for (const auto& listener : rest_->parameter_listeners) listener();
  if (before != up()) turned();
}

void Link::set_carrier(bool carrier) {
  bool before = up();
  carrier_ = carrier;
  note_parameters();
  if (before != up()) turned();
}

// The direction has gone up or down.
void Link::turned() {
  for (Link* link : {this, rest_->reverse}) {
    if (!link) continue;
    bool waits = link->paused_ != 0;
    link->forget_pauses();
    if (waits) link->kick();
  }
  for (const auto& listener : rest_->state_listeners) listener();
  if (up()) return;
  const TimeNs now = sides_.scheduler.now();
  sides_.far_scheduler.cancel(deliver_);
  while (!in_flight_.empty()) {
    lose(in_flight_.pop(), now);
    in_flight_.advance();
  }
  if (!sides_.crossings) return;
  rest_->last_crossed = 0;
  PacketFifo crossing;
  sides_.crossings->take_of(*this, crossing);
  while (PacketPtr packet = crossing.pop()) lose(std::move(packet), now);
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
