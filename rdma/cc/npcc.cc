#include "rdma/cc/npcc.h"

#include <fmt/format.h>

#include <algorithm>

#include "rdma/wire/ip_text.h"

namespace rocefs {
namespace {

// Flow of a data packet; empty for a CNP, whose flow goes the other way.
std::optional<NpccFlowKey> key_of(const Packet& packet, size_t ingress, uint16_t& source_port) {
  const uint8_t* at = packet.header.data();
  NpccFlowKey key;
  key.ingress = static_cast<uint16_t>(ingress);
  bool ipv6 = at[0] >> 4 == 6;
  if (ipv6) {
    std::copy_n(at + 8, 16, key.source.begin());
    std::copy_n(at + 24, 16, key.destination.begin());
  } else {
    key.source = mapped_ipv4({at[12], at[13], at[14], at[15]});
    key.destination = mapped_ipv4({at[16], at[17], at[18], at[19]});
  }
  const uint8_t* udp = at + (ipv6 ? wire::kIpv6Len : wire::kIpv4Len);
  const uint8_t* bth = udp + wire::kUdpLen;
  if (bth[0] == static_cast<uint8_t>(wire::Opcode::kCnp)) return std::nullopt;
  source_port = static_cast<uint16_t>(udp[0] << 8 | udp[1]);
  key.dest_qpn = uint32_t{bth[5]} << 16 | uint32_t{bth[6]} << 8 | bth[7];
  return key;
}

}  // namespace

Npcc::Npcc(NpccHost& host, Scheduler& scheduler, PacketPool& pool)
    : host_(host),
      scheduler_(scheduler),
      pool_(pool),
      tick_(event_of<&Npcc::on_interval>(this)),
      departure_(event_of<&Npcc::on_departure>(this)) {
  apply(initial_values(kNpccKnobs));
}

size_t Npcc::add_port() {
  ports_.push_back(std::make_unique<PortUnit>(*this, ports_.size()));
  return ports_.size() - 1;
}

void Npcc::apply(std::span<const KnobValue> values) {
  auto take = [&](size_t index) { return std::get<uint64_t>(values[index]); };
  parameters_.deep_threshold = take(knob_index(kNpccKnobs, "deep_threshold"));
  parameters_.interval_ns = static_cast<TimeNs>(take(knob_index(kNpccKnobs, "interval")));
  parameters_.microburst_us = take(knob_index(kNpccKnobs, "microburst_us"));
  parameters_.rising_shallow = take(knob_index(kNpccKnobs, "cnps_rising_shallow"));
  parameters_.rising_deep = take(knob_index(kNpccKnobs, "cnps_rising_deep"));
  parameters_.other_deep = take(knob_index(kNpccKnobs, "cnps_deep"));
  parameters_.processing_delay_ns =
      static_cast<TimeNs>(take(knob_index(kNpccKnobs, "processing_delay")));
  parameters_.cnp_dscp = take(knob_index(kNpccKnobs, "cnp_dscp"));
  // Shorter times hold from now on, not after what was due by the longer ones.
  const TimeNs now = scheduler_.now();
  if (tick_.scheduled()) {
    scheduler_.at(tick_, std::min(tick_.due(), now + parameters_.interval_ns));
  }
  for (Due& due : departures_) due.at = std::min(due.at, now + parameters_.processing_delay_ns);
  schedule_departure();
}

void Npcc::schedule_departure() {
  if (departures_.empty()) return scheduler_.cancel(departure_);
  scheduler_.at(departure_, departures_.front().at);
}

// The queue is not watched any more: its CNPs that have not left are dropped.
void Npcc::forget(size_t egress, size_t priority) {
  std::erase_if(departures_,
                [&](const Due& due) { return due.egress == egress && due.priority == priority; });
  schedule_departure();
}

void Npcc::PortUnit::apply(std::span<const KnobValue> values) {
  bool port = std::get<uint64_t>(values[knob_index(kNpccPortKnobs, "enable")]) != 0;
  constexpr size_t kFirst = knob_index(kNpccPortKnobs, "queue/0/enable");
  for (size_t priority = 0; priority < kPriorities; ++priority) {
    bool enable = port && std::get<uint64_t>(values[kFirst + priority]) != 0;
    if (enable != enabled[priority]) queues[priority] = {};
    if (!enable && enabled[priority]) owner.forget(egress, priority);
    enabled[priority] = enable;
  }
  owner.note_watched();
}

void Npcc::note_watched() {
  host_.watching(std::any_of(ports_.begin(), ports_.end(), [](const auto& port) {
    return std::find(port->enabled.begin(), port->enabled.end(), true) != port->enabled.end();
  }));
}

void Npcc::packet_queued(const Packet& packet, size_t ingress, size_t egress, size_t priority,
                         TimeNs now) {
  uint16_t source_port = 0;
  std::optional<NpccFlowKey> key = key_of(packet, ingress, source_port);
  if (!key) return;
  bool fresh = false;
  NpccFlow& flow = flows_.see(*key, now, fresh);
  if (fresh || (!flow.sender_qpn && now - flow.looked_up >= kLookUpGap)) look_up(flow, now);
  bool moved = flow.egress != egress || flow.priority != priority;
  if (flow.interval != interval_ || moved) flow.queued = 0;
  flow.interval = interval_;
  flow.egress = static_cast<uint16_t>(egress);
  flow.priority = static_cast<uint8_t>(priority);
  flow.source_port = source_port;
  flow.queued += packet.wire_length();
  Queue& queue = ports_[egress]->queues[priority];
  queue.queued += packet.wire_length();
  if (!queue.there) {
    queue.there = true;
    queue.was_deep = false;
    queue.since = now;
    queue.before = 0;
  }
  if (!tick_.scheduled()) scheduler_.at(tick_, now + parameters_.interval_ns);
}

void Npcc::look_up(NpccFlow& flow, TimeNs now) {
  flow.sender_qpn = host_.sender_of(flow.key, flow.sender_qpn);
  flow.looked_up = now;
}

void Npcc::learn_sender(const NpccFlowKey& flow, std::optional<uint32_t> sender) {
  if (NpccFlow* known = flows_.find(flow)) known->sender_qpn = sender;
}

void Npcc::on_interval(TimeNs now) {
  bool again = false;
  for (size_t egress = 0; egress < ports_.size(); ++egress) {
    for (size_t priority = 0; priority < kPriorities; ++priority) {
      Queue& queue = ports_[egress]->queues[priority];
      if (!queue.there) continue;
      uint64_t count = judge(queue, host_.queue_length(egress, priority), now);
      if (count > 0) notify(egress, priority, queue.queued, count, now);
      queue.queued = 0;
      again |= queue.there;
    }
  }
  ++interval_;
  flows_.age(now);
  if (again) scheduler_.at(tick_, now + parameters_.interval_ns);
}

// Number of CNPs for the queue in this interval.
uint64_t Npcc::judge(Queue& queue, uint64_t length, TimeNs now) {
  bool deep = length >= parameters_.deep_threshold;
  bool rising = length > queue.before;
  bool young = now - queue.since < static_cast<TimeNs>(parameters_.microburst_us) * kMicrosecond;
  queue.before = length;
  queue.was_deep |= deep;
  if (length == 0) {
    queue.there = false;
    if (young && !queue.was_deep) counters_.microbursts.add();
    return 0;
  }
  if (young && !queue.was_deep) return 0;
  if (rising) return deep ? parameters_.rising_deep : parameters_.rising_shallow;
  return deep ? parameters_.other_deep : 0;
}

// Gives each flow of the queue its share of CNPs; a fraction of a CNP is kept for the next
// interval. The sender may be another by now: receivers' numbers are used again.
void Npcc::notify(size_t egress, size_t priority, uint64_t queued, uint64_t count, TimeNs now) {
  if (queued == 0) return;
  for (NpccFlow& flow : flows_.all()) {
    if (flow.interval != interval_) return;  // all others are older
    if (flow.egress != egress || flow.priority != priority) continue;
    flow.owed +=
        static_cast<double>(count) * static_cast<double>(flow.queued) / static_cast<double>(queued);
    if (flow.owed >= 1 - 1e-9 && flow.sender_qpn) look_up(flow, now);
    for (; flow.owed >= 1 - 1e-9; flow.owed -= 1) owe(flow, now);
  }
}

void Npcc::owe(const NpccFlow& flow, TimeNs now) {
  if (!flow.sender_qpn) return counters_.unresolved.add();
  if (departures_.size() == kMaxDepartures) return counters_.overrun.add();
  CnpAddress address;
  address.from = flow.key.destination;
  address.to = flow.key.source;
  address.dest_qpn = *flow.sender_qpn;
  address.source_port = flow.source_port;
  address.traffic_class = static_cast<uint8_t>(parameters_.cnp_dscp << 2);
  departures_.push_back(
      {now + parameters_.processing_delay_ns, address, flow.egress, flow.priority});
  if (!departure_.scheduled()) schedule_departure();
}

void Npcc::on_departure(TimeNs now) {
  while (!departures_.empty() && departures_.front().at <= now) {
    counters_.cnp_sent.add();
    host_.send(make_cnp(pool_, departures_.front().address), now);
    departures_.pop_front();
  }
  schedule_departure();
}

void Npcc::reset() {
  scheduler_.cancel(tick_);
  scheduler_.cancel(departure_);
  departures_.clear();
  flows_.clear();
  for (auto& port : ports_) port->queues = {};
  interval_ = 1;
}

std::string Npcc::flows_text() const {
  std::string text = "source destination dest_qpn ingress egress priority sender_qpn seen_ns\n";
  for (const NpccFlow& flow : flows_.all()) {
    if (scheduler_.now() - flow.seen >= NpccFlows::kAge) break;
    text += fmt::format("{} {} {} {} {} {} {} {}\n", ip_text(flow.key.source),
                        ip_text(flow.key.destination), flow.key.dest_qpn, flow.key.ingress + 1,
                        flow.egress + 1, flow.priority,
                        flow.sender_qpn ? fmt::format("{}", *flow.sender_qpn) : "-", flow.seen);
  }
  return text;
}

}  // namespace rocefs
