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
    : destinations_(destinations),
      ports_(std::make_unique<SwitchPort[]>(cables)),
      queues_(std::make_unique<EgressQueue[]>(kPriorities * cables)),
      cables_(cables),
      outs_(cables),
      routes_(Rng(seed, "ecmp " + name).next()),
      number_(number),
      marker_(marker_rng(seed, name)),
      rests_(std::make_unique<PortRest[]>(cables)),
      unroutable_(unroutable),
      name_(std::move(name)),
      seed_(seed) {
  marker_.set(settings_.ecn);
  make_plan();
}

void Switch::reset() {
  for (EgressQueue& queue : queues()) {
    queue.fifo.clear();
    queue.bytes.set(0);
    queue.packets.set(0);
    queue.peak.set(0);
  }
  for (SwitchPort& port : ports()) {
    port.ingress.stored.fill(0);
    port.ingress.bytes.set(0);
    port.ingress.peak.set(0);
    port.ingress.pausing = 0;
    port.egress.waiting = 0;
    port.egress.awake = false;
    port.egress.first = nullptr;
    port.egress.turn.reset();
    port.egress.room = static_cast<int64_t>(port.rest->queued_limit);
  }
  flooded_.clear();
  used_.set(0);
  peak_.set(0);
  marker_.restart(marker_rng(seed_, name_));
}

void Switch::clear_counters() {
  zero_counters(kRoomCounters, drops());
  for (SwitchPort& port : ports()) {
    for (auto& counters : port.rest->ingress_counters) {
      zero_counters(kIngressCounters, counters);
    }
    for (auto& counters : port.rest->egress_counters) {
      zero_counters(kEgressCounters, counters);
    }
    zero_counters(kCableCounters, port.rest->cable_counters);
  }
}

LinkSink& Switch::add_port(Link& in, Link& out) {
  SwitchPort& port = ports_[count_];
  port.ingress.owner = port.egress.owner = this;
  port.ingress.index = port.egress.index = static_cast<uint16_t>(count_);
  port.ingress.link = &in;
  port.egress.link = &out;
  port.rest = &rests_[count_++];
  assert(&outs_[port.egress.index] == &out);
  for (Link* link : {&in, &out}) {
    link->add_parameter_listener([this] { make_plan(); });
    link->add_state_listener([&port] { port.note_link(); });
  }
  port.rest->was_up = port.link_up();
  make_plan();
  port.rest->headroom_built = port.rest->headroom_needed;
  return port.ingress;
}

SwitchPort& Switch::port_of(const Link& out) const {
  auto it = std::ranges::find_if(ports(),
                                 [&](const SwitchPort& port) { return port.egress.link == &out; });
  assert(it != ports().end());
  return *it;
}

LinkSource& Switch::source(const Link& out) {
  return port_of(out).egress;
}

std::vector<uint16_t> Switch::ports_of(std::span<const Link* const> links) const {
  std::vector<uint16_t> ports;
  for (const Link* link : links) ports.push_back(port_of(*link).egress.index);
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
  auto up = [&](uint16_t hop) { return outs_[hop].up(); };
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

void Switch::flood(IngressPort& from, const Packet& packet, TimeNs now) {
  const uint32_t number = flooded_.add(from.index);
  for (uint16_t port : flood_) {
    if (port != from.index) enqueue(&from, ports_[port].egress, copy_of(packet), now, number);
  }
  if (flooded_.copies(number) == 0) flooded_.remove(number);
}

void Switch::forward_frame(IngressPort& from, PacketPtr&& frame, TimeNs now) {
  std::span<const uint16_t> hops = way_to(*frame);
  if (hops.empty() || is_group_frame(*frame)) return flood(from, *frame, now);
  EgressPort& to = ports_[next_hop(*frame, hops)].egress;
  if (to.index != from.index) enqueue(&from, to, std::move(frame), now);
}

void Switch::forward(IngressPort& from, PacketPtr&& packet, TimeNs now) {
  if (packet->ethernet) return forward_frame(from, std::move(packet), now);
  if (is_multicast(*packet)) return flood(from, *packet, now);
  std::span<const uint16_t> hops = hops_of(*packet);
  if (hops.empty()) return unroutable_.add_shared();
  EgressPort& to = ports_[next_hop(*packet, hops)].egress;
  enqueue(&from, to, std::move(packet), now);
}

bool Switch::send(PacketPtr&& packet, TimeNs now) {
  std::optional<size_t> egress = route(*packet);
  if (egress) return enqueue(nullptr, ports_[*egress].egress, std::move(packet), now);
  unroutable_.add_shared();
  return false;
}

// `stored`: another copy is in the switch, and only the egress needs room.
Switch::Shortage Switch::shortage(IngressPort* from, EgressPort& to, size_t priority,
                                  uint64_t length, bool stored) const {
  using Room = RoomCounters;
  if (from && !stored) {
    const bool pausing = from->pausing >> priority & 1;
    if (pausing && from->stored[priority] + length > rests_[from->index].paused_limits[priority]) {
      return {from->link, &Room::pfc_headroom};
    }
    if (from->bytes.get() + length > from->limit) return {from->link, &Room::ingress_buffer};
  }
  if (!stored && used_.get() + length > settings_.buffer) {
    return {from ? from->link : to.link, &Room::switch_buffer};
  }
  if (to.room < static_cast<int64_t>(length)) return {to.link, &Room::egress_buffer};
  return {};
}

// Whether the sender runs on another packet core and has not heard of a PAUSE that it should have:
// it loses nothing by that.
bool Switch::excused(const IngressPort* from, size_t priority, uint64_t length, TimeNs now) const {
  if (!from || !from->link->crosses() || !(from->pausing >> priority & 1)) return false;
  const TimeNs obeyed = rests_[from->index].pause_obeyed[priority];
  return now > obeyed + static_cast<TimeNs>(from->link->serialization_ns(length));
}

bool Switch::enqueue(IngressPort* from, EgressPort& to, PacketPtr&& arriving, TimeNs now,
                     uint32_t flooded) {
  Packet& packet = *arriving;
  size_t priority = priority_of(packet);
  uint64_t length = packet.wire_length();
  EgressQueue& queue = this->queue(to.index, priority);
  const bool stored = flooded != kNoCopy && flooded_.copies(flooded) > 0;
  Shortage lacks = shortage(from, to, priority, length, stored);
  if (lacks.link && !excused(from, priority, length, now)) {
    lacks.link->losses().overflowed.add_shared();
    (drops_.*lacks.room).add();
    rests_[to.index].egress_counters[priority].dropped.add();
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
  to.room -= static_cast<int64_t>(length);
  packet.ingress = from ? from->index : kNoIngress;
  if (flooded != kNoCopy) {
    packet.ingress = kFlooded;
    packet.flooded = flooded;
    ++flooded_.copies(flooded);
  }
  if (!stored) take_room(from, priority, length);
  if (observer_ && from && !packet.ethernet)
    observer_->enqueued(packet, from->index, to.index, now);
  if (!to.awake) {
    to.awake = true;
    to.link->kick();
  }
  return true;
}

void Switch::take_room(IngressPort* from, size_t priority, uint64_t length) {
  used_.add(length);
  raise(peak_, used_.get());
  if (!from) return;
  from->bytes.add(length);
  raise(from->peak, from->bytes.get());
  const uint64_t stored = from->stored[priority] += length;
  const bool pausing = from->pausing >> priority & 1;
  if (plan_.pfc && !pausing && stored > plan_.pause_above(used_.get())) pause(*from, priority);
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
  IngressPort& ingress = ports_[from].ingress;
  ingress.bytes.set(ingress.bytes.get() - length);
  const uint64_t stored = ingress.stored[priority] -= length;
  const bool pausing = ingress.pausing >> priority & 1;
  if (pausing && plan_.resumes(stored, used_.get())) resume(ingress, priority);
}

PacketPtr Switch::dequeue(EgressPort& from, TimeNs now) {
  auto ready = static_cast<uint8_t>(from.waiting & ~from.link->paused());
  if (ready == 0) {
    from.awake = false;
    return nullptr;
  }
  size_t priority = from.turn.next(ready);
  EgressQueue& queue = this->queue(from.index, priority);
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
  from.room += static_cast<int64_t>(length);
  if (marker_.at_dequeue()) mark(from, priority, *packet);
  if (packet->option_len > 0 && settings_.telemetry) stamp(from, queue, *packet, now);
  free_room(*packet, priority, length);
  return packet;
}

void Switch::prefetch_pull(const EgressPort& from, int step) const {
  if (step == 1) {
    if (from.first) rocefs::prefetch(*from.first);
    if (from.waiting) {
      __builtin_prefetch(&queue(from.index, std::countr_zero(from.waiting)), 1);
    }
  } else if (step == 2 && from.first && from.first->ingress < kFlooded) {
    prefetch_two_lines(&ports_[from.first->ingress].ingress);
  }
}

// Follows the packet's way, a miss at each step. A packet's first switch must look up where it
// goes.
void Switch::prefetch_receive(const Packet& packet, int step) const {
  const bool found = destinations_.found(packet);
  if (!found && (packet.ethernet || is_multicast(packet))) return;
  if (step == 1) {
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
  outs_[hop].prefetch();
  __builtin_prefetch(&ports_[hop].egress, 1);
  __builtin_prefetch(&queue(hop, priority_of(packet)), 1);
}

void Switch::measure_queues(QueueTimes& into, TimeNs now) {
  queue_times_ = &into;
  for (EgressQueue& queue : queues()) queue.since = now;
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
  for (EgressQueue& queue : queues()) {
    if (queue.times) note_length(queue, now);
  }
  queue_times_->settle();
}

void Switch::mark(EgressPort& port, size_t priority, Packet& packet) {
  Ecn ecn = ecn_of(packet);
  if (ecn == Ecn::kNotCapable || ecn == Ecn::kCongested) return;
  if (!marker_.marks(queue(port.index, priority).bytes.get())) return;
  mark_congested(packet);
  rests_[port.index].egress_counters[priority].marked.add();
}

// The octets sent include Ethernet framing, as the link's rate does.
void Switch::stamp(const EgressPort& port, const EgressQueue& queue, Packet& packet, TimeNs now) {
  const LinkCounters& sent = port.link->counters();
  wire::Telemetry(packet.options())
      .stamp({.queue = queue.bytes.get(),
              .sent = sent.bytes.get() + sent.packets.get() * kEthernetOverhead,
              .time_ns = static_cast<uint64_t>(now),
              .rate_bps = port.link->parameters().rate_bps,
              .port = static_cast<uint16_t>((port.link->id() + 1) * 40503u)});
}

void Switch::pause(IngressPort& port, size_t priority) {
  PortRest& rest = rests_[port.index];
  port.pausing |= static_cast<uint8_t>(1u << priority);
  rest.paused_limits[priority] = port.stored[priority] + rest.headroom;
  rest.ingress_counters[priority].pause_sent.add();
  outs_[port.index].send_pause(priority, true);
  rest.pause_obeyed[priority] =
      outs_[port.index].pause_arrival() + port.link->parameters().delay_ns;
}

void Switch::resume(IngressPort& port, size_t priority) {
  port.pausing &= static_cast<uint8_t>(~(1u << priority));
  outs_[port.index].send_pause(priority, false);
}

// The configured headroom, or what the link needs, limited by the buffer.
uint64_t Switch::headroom_for(const SwitchSettings& settings, uint64_t needed) const {
  if (settings.pfc.headroom) return settings.pfc.headroom;
  return std::min(needed, settings.buffer / (kPriorities * count_) / 2);
}

void Switch::make_plan() {
  uint64_t reserved = 0;
  for (SwitchPort& port : ports()) {
    const LinkParameters& in = port.ingress.link->parameters();
    const LinkParameters& out = port.egress.link->parameters();
    PortRest& rest = *port.rest;
    port.ingress.limit = in.ingress_buffer_bytes;
    port.egress.room += static_cast<int64_t>(out.buffer_bytes - rest.queued_limit);
    rest.queued_limit = out.buffer_bytes;
    rest.headroom_needed = headroom_of(in, out, settings_.telemetry ? wire::kMaxOptionsLen : 0);
    rest.headroom = headroom_for(settings_, rest.headroom_needed);
    reserved += kPriorities * rest.headroom;
  }
  note_headroom();
  plan_ = BufferPlan(settings_, count_, reserved);
}

void Switch::set_warning(std::function<void(const std::string&)> warn) {
  warn_ = std::move(warn);
  for (PortRest& rest : rests()) rest.headroom_short = false;
  note_headroom();
  warn_of_late_marks();
}

// Reports ports that have come short of headroom, those with the same figures in one line.
void Switch::note_headroom() {
  std::map<std::pair<uint64_t, uint64_t>, std::vector<size_t>> news;
  for (const SwitchPort& port : ports()) {
    PortRest& rest = *port.rest;
    bool is_short = settings_.pfc.enable && rest.headroom < rest.headroom_needed;
    if (is_short && !rest.headroom_short) {
      news[{rest.headroom, rest.headroom_needed}].push_back(port.egress.index + 1u);
    }
    rest.headroom_short = is_short;
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
  for (const PortRest& rest : rests()) {
    uint64_t needed = std::min(rest.headroom_needed, rest.headroom_built);
    reserved += kPriorities * headroom_for(settings, needed);
  }
  return check_settings(settings, count_, reserved);
}

void Switch::apply(std::span<const KnobValue> values) {
  SwitchSettings before = std::exchange(settings_, SwitchSettings::of(values));
  uint64_t bound_before = plan_.ecn_bound();
  marker_.set(settings_.ecn);
  make_plan();
  for (SwitchPort& port : ports()) {
    for (size_t priority = 0; priority < kPriorities; ++priority) {
      IngressPort& ingress = port.ingress;
      const bool pausing = ingress.pausing >> priority & 1;
      bool ends = !plan_.pfc || plan_.resumes(ingress.stored[priority], used_.get());
      if (pausing && ends) resume(ingress, priority);
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
