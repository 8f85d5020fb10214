#include "rdma/workload/collectives.h"

#include <algorithm>
#include <numeric>

namespace rocefs {

void Collective::send(TimeNs at, uint32_t from, uint32_t to, uint64_t bytes) {
  if (rule_.jitter > 0) {
    at = later(at, static_cast<TimeNs>(rng_.below(static_cast<uint64_t>(rule_.jitter) + 1)));
  }
  plan(at, {from, to, bytes});
}

void Collective::begin_round(TimeNs at) {
  began_ = at;
  running_ = flows_a_round_ = begin_flows(at);
}

void Collective::passed(const FlowStart& flow, TimeNs now) {
  follow(flow, now);
  if (--running_ > 0) return;
  round_over({round_, began_, now});
  if (++round_ < rule_.rounds) begin_round(later(now, rule_.gap));
}

// Shuffled until nobody sends to itself: about every third shuffle is such a one.
uint64_t PermutationPattern::begin_flows(TimeNs at) {
  std::vector<uint32_t> to(rule().hosts);
  std::iota(to.begin(), to.end(), 0u);
  auto fixed = [&] {
    for (uint32_t i = 0; i < to.size(); ++i) {
      if (to[i] == i) return true;
    }
    return false;
  };
  while (fixed()) {
    for (size_t i = to.size() - 1; i > 0; --i) std::swap(to[i], to[rng().below(i + 1)]);
  }
  for (uint32_t from = 0; from < to.size(); ++from) send(at, from, to[from], rule().bytes);
  return to.size();
}

uint64_t AllToAllPattern::begin_flows(TimeNs at) {
  sent_.assign(rule().hosts, 0);
  const uint64_t others = rule().hosts - 1;
  for (uint64_t i = 0; i < std::min(rule().parallel, others); ++i) {
    for (uint32_t from = 0; from < rule().hosts; ++from) send_next(from, at);
  }
  return rule().hosts * others;
}

void AllToAllPattern::follow(const FlowStart& flow, TimeNs now) {
  if (sent_[flow.from] < rule().hosts - 1) send_next(flow.from, now);
}

void AllToAllPattern::send_next(uint32_t from, TimeNs at) {
  uint32_t to = (from + ++sent_[from]) % rule().hosts;
  send(at, from, to, rule().bytes);
}

uint64_t RingAllReducePattern::begin_flows(TimeNs at) {
  hosts_.assign(rule().hosts, {});
  for (uint32_t host = 0; host < rule().hosts; ++host) send_if_ready(host, at);
  return uint64_t{2} * (rule().hosts - 1) * rule().hosts;
}

void RingAllReducePattern::follow(const FlowStart& flow, TimeNs now) {
  ++hosts_[flow.from].sent;
  ++hosts_[flow.to].received;
  send_if_ready(flow.from, now);
  send_if_ready(flow.to, now);
}

void RingAllReducePattern::send_if_ready(uint32_t host, TimeNs at) {
  Host& own = hosts_[host];
  const uint32_t steps = 2 * (rule().hosts - 1);
  bool ready = own.started < steps && own.sent == own.started && own.received >= own.started;
  if (!ready) return;
  ++own.started;
  uint64_t part = (rule().bytes + rule().hosts - 1) / rule().hosts;
  send(at, host, (host + 1) % rule().hosts, part);
}

uint32_t TreeAllReducePattern::children(uint32_t host) const {
  uint64_t first = uint64_t{2} * host + 1;
  return static_cast<uint32_t>(
      std::min<uint64_t>(2, rule().hosts - std::min<uint64_t>(first, rule().hosts)));
}

uint64_t TreeAllReducePattern::begin_flows(TimeNs at) {
  awaited_.clear();
  for (uint32_t host = 0; host < rule().hosts; ++host) awaited_.push_back(children(host));
  for (uint32_t host = 1; host < rule().hosts; ++host) {
    if (awaited_[host] == 0) send(at, host, (host - 1) / 2, rule().bytes);
  }
  return uint64_t{2} * (rule().hosts - 1);
}

void TreeAllReducePattern::follow(const FlowStart& flow, TimeNs now) {
  bool down = flow.to > flow.from;  // children have higher numbers
  if (down) return broadcast(flow.to, now);
  if (--awaited_[flow.to] > 0) return;
  if (flow.to == 0) return broadcast(0, now);
  send(now, flow.to, (flow.to - 1) / 2, rule().bytes);
}

void TreeAllReducePattern::broadcast(uint32_t host, TimeNs at) {
  for (uint32_t i = 0; i < children(host); ++i) send(at, host, 2 * host + 1 + i, rule().bytes);
}

}  // namespace rocefs
