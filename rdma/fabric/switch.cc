#include "rdma/fabric/switch.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <map>
#include <utility>

#include "core/base/prefetch.h"
#include "rdma/packet/ethernet_frame.h"

namespace rocefs {
namespace {

Rng marker_rng(uint64_t seed, const std::string& name) {
  return Rng(seed, "ecn " + name);
}

void raise(Counter& peak, uint64_t value) {
  if (value > peak.get()) peak.set(value);
}

// Ascending numbers, as in "1-3,7".
std::string ranges_text(const std::vector<size_t>& numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size(); ++i) {
    const size_t first = numbers[i];
    while (i + 1 < numbers.size() && numbers[i + 1] == numbers[i] + 1) ++i;
    text += fmt::format("{}{}", text.empty() ? "" : ",", first);
    if (numbers[i] != first) text += fmt::format("-{}", numbers[i]);
  }
  return text;
}

}  // namespace

Switch::Switch(std::string name, uint32_t number, const DestinationTable& destinations,
               uint64_t seed, Counter& unroutable, size_t cables)
    : name_(std::move(name)),
      number_(number),
      destinations_(destinations),
      seed_(seed),
      unroutable_(unroutable),
      units_(std::make_unique<PortUnit[]>(cables)),
      routes_(Rng(seed, "ecmp " + name_).next()),
      marker_(marker_rng(seed, name_)) {
  marker_.set(settings_.ecn);
  make_plan();
}

void Switch::reset() {
  for (PortUnit& port : ports()) {
    for (EgressQueue& queue : port.queues) {
      queue.fifo.clear();
      queue.bytes.set(0);
      queue.packets.set(0);
      queue.peak.set(0);
    }
    for (IngressCount& count : port.ingress) count.bytes = 0;
    port.waiting = 0;
    port.first = nullptr;
    port.turn.reset();
    port.queued_bytes = 0;
    port.ingress_bytes.set(0);
    port.ingress_peak.set(0);
    forget_pauses(port);
  }
  flooded_.clear();
  used_.set(0);
  peak_.set(0);
  marker_.restart(marker_rng(seed_, name_));
}

LinkSink& Switch::add_port(Link& in, Link& out) {
  PortUnit* unit = &units_[count_];
  unit->owner = this;
  unit->index = static_cast<uint16_t>(count_++);
  unit->in = &in;
  unit->out = &out;
  outs_.push_back(&out);
  for (Link* link : {&in, &out}) {
    link->add_parameter_listener([this] { make_plan(); });
    link->add_state_listener([this, unit] { forget_pauses(*unit); });
  }
  make_plan();
  unit->headroom_built = unit->headroom_needed;
  return *unit;
}

Switch::PortUnit& Switch::unit_of(const Link& out) const {
  auto it = std::ranges::find_if(ports(), [&](const PortUnit& port) { return port.out == &out; });
  assert(it != ports().end());
  return *it;
}

LinkSource& Switch::source(const Link& out) {
  return unit_of(out);
}

std::vector<uint16_t> Switch::ports_of(std::span<const Link* const> links) const {
  std::vector<uint16_t> ports;
  for (const Link* link : links) ports.push_back(unit_of(*link).index);
  return ports;
}

// Next hops of a known destination; empty without a route.
std::span<const uint16_t> Switch::way_to(const Packet& packet) const {
  const Destination* to = destinations_.find(packet);
  if (!to) return {};
  if (to->hub == number_) return {&to->port, 1};
  return routes_.find(to->hub);
}

std::span<const uint16_t> Switch::hops_of(const Packet& packet) const {
  std::span<const uint16_t> hops = way_to(packet);
  return hops.empty() ? std::span<const uint16_t>(default_hops_) : hops;
}

// Chooses among all hops, so that a flow moves only if its hop is down; then among those that are
// up.
size_t Switch::next_hop(const Packet& packet, std::span<const uint16_t> hops) const {
  if (hops.size() == 1) return hops[0];
  auto up = [&](uint16_t hop) { return outs_[hop]->up(); };
  uint64_t hash = routes_.flow_hash(packet);
  uint16_t chosen = hops[RouteTable::choose(hash, hops.size())];
  if (up(chosen)) return chosen;
  auto alive = static_cast<size_t>(std::count_if(hops.begin(), hops.end(), up));
  if (alive == 0) return chosen;
  // The hash's upper bits are used up.
  size_t skip = RouteTable::choose(hash * 0x9e3779b97f4a7c15, alive);
  for (uint16_t hop : hops) {
    if (up(hop) && skip-- == 0) return hop;
  }
  return chosen;
}

std::optional<size_t> Switch::route(const Packet& packet) const {
  std::span<const uint16_t> hops = hops_of(packet);
  if (hops.empty()) return std::nullopt;
  return next_hop(packet, hops);
}

void Switch::flood(PortUnit& from, const Packet& packet, TimeNs now) {
  const uint32_t number = flooded_.add(from.index);
  for (uint16_t port : flood_) {
    if (port != from.index) enqueue(&from, units_[port], copy_of(packet), now, number);
  }
  if (flooded_.copies(number) == 0) flooded_.remove(number);
}

void Switch::forward_frame(PortUnit& from, PacketPtr&& frame, TimeNs now) {
  std::span<const uint16_t> hops = way_to(*frame);
  if (hops.empty() || is_group_frame(*frame)) return flood(from, *frame, now);
  PortUnit& to = units_[next_hop(*frame, hops)];
  if (to.index != from.index) enqueue(&from, to, std::move(frame), now);
}

void Switch::forward(PortUnit& from, PacketPtr&& packet, TimeNs now) {
  if (packet->ethernet) return forward_frame(from, std::move(packet), now);
  if (is_multicast(*packet)) return flood(from, *packet, now);
  std::span<const uint16_t> hops = hops_of(*packet);
  if (hops.empty()) return unroutable_.add_shared();
  PortUnit& to = units_[next_hop(*packet, hops)];
  enqueue(&from, to, std::move(packet), now);
}

bool Switch::send(PacketPtr&& packet, TimeNs now) {
  std::optional<size_t> egress = route(*packet);
  if (egress) return enqueue(nullptr, units_[*egress], std::move(packet), now);
  unroutable_.add_shared();
  return false;
}

// `stored`: another copy is in the switch, and only the egress needs room.
Switch::Shortage Switch::shortage(PortUnit* from, PortUnit& to, size_t priority, uint64_t length,
                                  bool stored) const {
  using Room = RoomCounters;
  if (from && !stored) {
    const IngressCount& count = from->ingress[priority];
    if (count.pausing && count.bytes + length > count.limit) return {from->in, &Room::pfc_headroom};
    if (from->ingress_bytes.get() + length > from->ingress_limit) {
      return {from->in, &Room::ingress_buffer};
    }
  }
  if (!stored && used_.get() + length > settings_.buffer) {
    return {from ? from->in : to.out, &Room::switch_buffer};
  }
  if (to.queued_bytes + length > to.queued_limit) {
    return {to.out, &Room::egress_buffer};
  }
  return {};
}

bool Switch::enqueue(PortUnit* from, PortUnit& to, PacketPtr&& arriving, TimeNs now,
                     uint32_t flooded) {
  Packet& packet = *arriving;
  size_t priority = priority_of(packet);
  uint64_t length = packet.wire_length();
  EgressQueue& queue = to.queues[priority];
  const bool stored = flooded != kNoCopy && flooded_.copies(flooded) > 0;
  if (Shortage lacks = shortage(from, to, priority, length, stored); lacks.link) {
    lacks.link->counters().overflowed.add();
    (drops_.*lacks.room).add();
    to.egress_counters[priority].dropped.add();
    return false;
  }
  if (marker_.at_enqueue()) mark(to, priority, packet);
  if (to.waiting == 0) to.first = &packet;
  queue.fifo.push(std::move(arriving));
  queue.packets.add();
  if (queue_times_) note_length(queue, now);
  queue.bytes.add(length);
  raise(queue.peak, queue.bytes.get());
  to.waiting |= static_cast<uint8_t>(1u << priority);
  to.queued_bytes += length;
  packet.ingress = from ? from->index : kNoIngress;
  if (flooded != kNoCopy) {
    packet.ingress = kFlooded;
    packet.flooded = flooded;
    ++flooded_.copies(flooded);
  }
  if (!stored) take_room(from, priority, length);
  if (observer_ && from && !packet.ethernet)
    observer_->enqueued(packet, from->index, to.index, now);
  to.out->kick();
  return true;
}

void Switch::take_room(PortUnit* from, size_t priority, uint64_t length) {
  used_.add(length);
  raise(peak_, used_.get());
  if (!from) return;
  IngressCount& count = from->ingress[priority];
  from->ingress_bytes.add(length);
  raise(from->ingress_peak, from->ingress_bytes.get());
  count.bytes += length;
  bool above = plan_.pfc && !count.pausing && count.bytes > plan_.pause_above(used_.get());
  if (above) pause(*from, priority);
}

// Frees the room of a packet that leaves, if no other copy stays.
void Switch::free_room(const Packet& packet, size_t priority, uint64_t length) {
  uint16_t from = packet.ingress;
  if (from == kFlooded) {
    if (--flooded_.copies(packet.flooded) > 0) return;
    from = flooded_.ingress(packet.flooded);
    flooded_.remove(packet.flooded);
  }
  used_.set(used_.get() - length);
  if (from == kNoIngress) return;
  PortUnit& ingress = units_[from];
  IngressCount& count = ingress.ingress[priority];
  ingress.ingress_bytes.set(ingress.ingress_bytes.get() - length);
  count.bytes -= length;
  if (count.pausing && plan_.resumes(count.bytes, used_.get())) resume(ingress, priority);
}

PacketPtr Switch::dequeue(PortUnit& from, TimeNs now) {
  auto ready = static_cast<uint8_t>(from.waiting & ~from.out->paused());
  if (ready == 0) return nullptr;
  size_t priority = from.turn.next(ready);
  EgressQueue& queue = from.queues[priority];
  PacketPtr packet = queue.fifo.pop();
  uint64_t length = packet->wire_length();
  from.turn.sent(priority, length + kEthernetOverhead);
  from.first = queue.fifo.front();
  // The next packet may have waited long enough to leave the cache.
  if (from.first) rocefs::prefetch(*from.first);
  if (queue.fifo.empty()) from.waiting &= static_cast<uint8_t>(~(1u << priority));
  queue.packets.set(queue.packets.get() - 1);
  if (queue_times_) note_length(queue, now);
  queue.bytes.set(queue.bytes.get() - length);
  from.queued_bytes -= length;
  if (marker_.at_dequeue()) mark(from, priority, *packet);
  if (packet->option_len > 0 && settings_.telemetry) stamp(from, queue, *packet, now);
  free_room(*packet, priority, length);
  return packet;
}

void Switch::prefetch_pull(const PortUnit& from, int step) const {
  if (step == 1) {
    if (from.first) rocefs::prefetch(*from.first);
    if (from.waiting) __builtin_prefetch(&from.queues[std::countr_zero(from.waiting)], 1);
  } else if (step == 2 && from.first && from.first->ingress < kFlooded) {
    const PortUnit& ingress = units_[from.first->ingress];
    __builtin_prefetch(&ingress, 1);
    __builtin_prefetch(&ingress.ingress[priority_of(*from.first)], 1);
  }
}

// Follows the packet's way, a miss at each step. A packet's first switch must look up where it
// goes.
void Switch::prefetch_receive(const PortUnit& from, const Packet& packet, int step) const {
  const bool found = destinations_.found(packet);
  if (!found && (packet.ethernet || is_multicast(packet))) return;
  if (step == 1) {
    __builtin_prefetch(&from.ingress[priority_of(packet)], 1);
    return found ? routes_.prefetch(packet.destination.hub) : destinations_.prefetch(packet);
  }
  if (step == 2 && !found) {
    if (const Destination* to = destinations_.find(packet)) routes_.prefetch(to->hub);
    return;
  }
  const bool first_switch = packet.ingress == kNoIngress;
  if (step == 3 && !first_switch) return;
  std::span<const uint16_t> hops = way_to(packet);
  if (hops.empty()) return;
  size_t hop = hops[0];
  if (hops.size() > 1) hop = hops[RouteTable::choose(routes_.flow_hash(packet), hops.size())];
  outs_[hop]->prefetch();
  prefetch_two_lines(&units_[hop]);
  __builtin_prefetch(&units_[hop].queues[priority_of(packet)], 1);
}

void Switch::measure_queues(QueueTimes& into, TimeNs now) {
  queue_times_ = &into;
  for (PortUnit& port : ports()) {
    for (EgressQueue& queue : port.queues) queue.since = now;
  }
}

// The queue had its length until now, and is about to have another one.
void Switch::note_length(EgressQueue& queue, TimeNs now) {
  if (!queue.times) queue.times = &queue_times_->add_queue();
  const uint64_t octets = queue.bytes.get();
  // A packet that passes an idle queue is the usual case: its length lasted no time.
  if (now == queue.since && octets <= queue.longest) return;
  queue.longest = std::max(queue.longest, octets);
  queue_times_->add(*queue.times, octets, now - queue.since);
  queue.since = now;
}

void Switch::note_queues(TimeNs now) {
  if (!queue_times_) return;
  for (PortUnit& port : ports()) {
    for (EgressQueue& queue : port.queues) {
      if (queue.times) note_length(queue, now);
    }
  }
  queue_times_->settle();
}

void Switch::mark(PortUnit& port, size_t priority, Packet& packet) {
  Ecn ecn = ecn_of(packet);
  if (ecn == Ecn::kNotCapable || ecn == Ecn::kCongested) return;
  if (!marker_.marks(port.queues[priority].bytes.get())) return;
  mark_congested(packet);
  port.egress_counters[priority].marked.add();
}

// The octets sent include Ethernet framing, as the link's rate does.
void Switch::stamp(const PortUnit& port, const EgressQueue& queue, Packet& packet, TimeNs now) {
  const LinkCounters& sent = port.out->counters();
  wire::Telemetry(packet.options())
      .stamp({.queue = queue.bytes.get(),
              .sent = sent.bytes.get() + sent.packets.get() * kEthernetOverhead,
              .time_ns = static_cast<uint64_t>(now),
              .rate_bps = port.out->parameters().rate_bps,
              .port = static_cast<uint16_t>((port.out->id() + 1) * 40503u)});
}

void Switch::pause(PortUnit& port, size_t priority) {
  IngressCount& count = port.ingress[priority];
  count.pausing = true;
  count.limit = count.bytes + port.headroom;
  count.counters.pause_sent.add();
  port.out->send_pause(priority, true);
}

void Switch::resume(PortUnit& port, size_t priority) {
  port.ingress[priority].pausing = false;
  port.out->send_pause(priority, false);
}

// Clears the pause state after the link has lost it.
void Switch::forget_pauses(PortUnit& port) {
  for (IngressCount& count : port.ingress) count.pausing = false;
}

// The configured headroom, or what the link needs, limited by the buffer.
uint64_t Switch::headroom_for(const SwitchSettings& settings, uint64_t needed) const {
  if (settings.pfc.headroom) return settings.pfc.headroom;
  return std::min(needed, settings.buffer / (kPriorities * count_) / 2);
}

void Switch::make_plan() {
  uint64_t reserved = 0;
  for (PortUnit& port : ports()) {
    port.ingress_limit = port.in->parameters().ingress_buffer_bytes;
    port.queued_limit = port.out->parameters().buffer_bytes;
    port.headroom_needed = headroom_of(port.in->parameters(), port.out->parameters(),
                                       settings_.telemetry ? wire::kMaxOptionsLen : 0);
    port.headroom = headroom_for(settings_, port.headroom_needed);
    reserved += kPriorities * port.headroom;
  }
  note_headroom();
  plan_ = BufferPlan(settings_, count_, reserved);
}

void Switch::set_warning(std::function<void(const std::string&)> warn) {
  warn_ = std::move(warn);
  for (PortUnit& port : ports()) port.headroom_short = false;
  note_headroom();
}

// Reports ports that have come short of headroom, those with the same figures in one line.
void Switch::note_headroom() {
  std::map<std::pair<uint64_t, uint64_t>, std::vector<size_t>> news;
  for (PortUnit& port : ports()) {
    bool is_short = settings_.pfc.enable && port.headroom < port.headroom_needed;
    if (is_short && !port.headroom_short) {
      news[{port.headroom, port.headroom_needed}].push_back(port.index + 1);
    }
    port.headroom_short = is_short;
  }
  if (!warn_) return;
  for (const auto& [figures, numbers] : news) {
    bool one = numbers.size() == 1;
    warn_(fmt::format(
        "{}: {} {} PFC headroom {}, {} for {}: packets that come after PAUSE may be lost", name_,
        one ? "port " + std::to_string(numbers[0]) : "ports " + ranges_text(numbers),
        one ? "has" : "have", figures.first, one ? "its link calls" : "their links call",
        figures.second));
  }
}

// Checked with the links' present parameters, or the initial ones if those leave more to share: a
// reset to the configuration is always accepted.
Result<void> Switch::check(std::span<const KnobValue> proposed) const {
  SwitchSettings settings = SwitchSettings::of(proposed);
  uint64_t reserved = 0;
  for (const PortUnit& port : ports()) {
    uint64_t needed = std::min(port.headroom_needed, port.headroom_built);
    reserved += kPriorities * headroom_for(settings, needed);
  }
  return check_settings(settings, count_, reserved);
}

void Switch::apply(std::span<const KnobValue> values) {
  SwitchSettings before = std::exchange(settings_, SwitchSettings::of(values));
  uint64_t bound_before = plan_.ecn_bound();
  marker_.set(settings_.ecn);
  make_plan();
  for (PortUnit& port : ports()) {
    for (size_t priority = 0; priority < kPriorities; ++priority) {
      const IngressCount& count = port.ingress[priority];
      bool ends = !plan_.pfc || plan_.resumes(count.bytes, used_.get());
      if (count.pausing && ends) resume(port, priority);
    }
  }
  bool news = settings_.ecn.kmin != before.ecn.kmin || plan_.ecn_bound() != bound_before ||
              settings_.ecn.enable != before.ecn.enable ||
              settings_.pfc.enable != before.pfc.enable;
  if (news) warn_of_late_marks();
}

void Switch::warn_of_late_marks() {
  if (!warn_ || !plan_.pfc || !settings_.ecn.enable) return;
  if (settings_.ecn.kmin <= plan_.ecn_bound()) return;
  warn_(fmt::format("{}: ecn/kmin {} is above its bound {}: PAUSE may come before the first mark",
                    name_, settings_.ecn.kmin, plan_.ecn_bound()));
}

}  // namespace rocefs
