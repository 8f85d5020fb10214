#include "mad_cc/net/routes.h"

#include <algorithm>
#include <utility>

#include "mad_cc/net/attributes.h"

namespace rocefs {

Routes::Routes(const Subnet& subnet, const SubnetState& state)
    : subnet_(&subnet), state_(&state), present_(subnet.nodes.size()), rows_(subnet.nodes.size()) {
  first_port_.reserve(subnet.nodes.size());
  uint32_t ports = 0;
  for (const SubnetNode& node : subnet.nodes) {
    first_port_.push_back(ports);
    ports += static_cast<uint32_t>(node.ports.size());
  }
  up_.resize(ports);
}

bool Routes::present(size_t node) const {
  return once(present_[node], [&] { return state_->present(node); });
}

bool Routes::up(Subnet::End at) const {
  return once(up_[first_port_[at.node] + at.port], [&] { return state_->up(at.node, at.port); });
}

uint64_t Routes::rate_bps(Subnet::End at) const {
  if (rates_bps_.empty()) rates_bps_.resize(up_.size());
  uint64_t& rate = rates_bps_[first_port_[at.node] + at.port];
  if (rate == 0) rate = mad::rate_bps(*subnet_, *state_, at);
  return rate;
}

std::optional<Subnet::End> Routes::across(Subnet::End at) const {
  const SubnetPort& own = subnet_->at(at);
  if (own.peer == SubnetPort::kNoPeer || !up(at)) return std::nullopt;
  if (!present(at.node) || !present(own.peer)) return std::nullopt;
  return Subnet::End{own.peer, own.peer_port};
}

std::optional<Routes::Path> Routes::path(Subnet::End from, Subnet::End to) const {
  if (!present(from.node) || !present(to.node)) return std::nullopt;
  bool from_switch = subnet_->nodes[from.node].is_switch,
       to_switch = subnet_->nodes[to.node].is_switch;
  // Port without a cable: the end of no path, not even of one to itself.
  auto entry = from_switch ? from : across(from);
  auto exit = to_switch ? to : across(to);
  if (!entry || !exit) return std::nullopt;
  if (from == to) return Path{0, rate_bps(from), subnet_->at(from).mtu};
  if (!from_switch && *entry == to) return over(from, to, {.hops = 0});
  if (!subnet_->nodes[entry->node].is_switch || !subnet_->nodes[exit->node].is_switch)
    return std::nullopt;

  Step step = towards(exit->node)[entry->node];
  if (step.hops == Step::kNever) return std::nullopt;
  if (!to_switch) {
    Path last = over(*exit, to, {.hops = 0});
    bool alone = step.hops == 0;
    step = {step.hops + 1, alone ? last.mtu : std::min(step.mtu, last.mtu), step.port,
            alone ? last.rate_bps : std::min(step.rate_bps, last.rate_bps)};
  }
  if (from_switch) return Path{step.hops, step.rate_bps, step.mtu};
  return over(from, *entry, step);
}

Routes::Path Routes::over(Subnet::End at, Subnet::End to, const Step& rest) const {
  Path path{rest.hops + 1, rate_bps(at), std::min(subnet_->at(at).mtu, subnet_->at(to).mtu)};
  if (rest.hops == 0) return path;
  return {path.hops, std::min(path.rate_bps, rest.rate_bps), std::min(path.mtu, rest.mtu)};
}

uint8_t Routes::forward(size_t switch_node, Subnet::End to) const {
  if (switch_node == to.node) return 0;
  bool to_switch = subnet_->nodes[to.node].is_switch;
  auto exit = to_switch ? std::optional(to) : across(to);
  if (!exit || !present(to.node) || !subnet_->nodes[exit->node].is_switch) return kNoWay;
  if (exit->node == switch_node) return exit->port;
  return towards(exit->node)[switch_node].port;
}

SubnetSettings::Octets Routes::linear_block(size_t switch_node, uint32_t block) const {
  if (const auto* written = state_->settings.find(switch_node, mad::kLinearTable, block))
    return *written;
  SubnetSettings::Octets ports;
  for (size_t i = 0; i < ports.size(); ++i) {
    auto end = subnet_->find(static_cast<uint16_t>(block * ports.size() + i));
    ports[i] = end ? forward(switch_node, *end) : kNoWay;
  }
  return ports;
}

const Routes::Row& Routes::towards(size_t switch_node) const {
  Row& row = rows_[switch_node];
  if (!row.empty()) return row;
  row.resize(subnet_->nodes.size());
  row[switch_node].hops = 0;
  std::vector<size_t> now{switch_node}, next;
  while (!now.empty()) {
    for (size_t node : now) visit(node, row, next);
    now = std::exchange(next, {});
  }
  return row;
}

void Routes::visit(size_t node, Row& row, std::vector<size_t>& next) const {
  const Step here = row[node];
  const std::vector<SubnetPort>& ports = subnet_->nodes[node].ports;
  effort_ += ports.size();
  for (size_t p = 1; p < ports.size(); ++p) {
    // Short cut: most cables lead to channel adapters, whose state is not needed.
    size_t peer = ports[p].peer;
    if (peer == SubnetPort::kNoPeer || !subnet_->nodes[peer].is_switch) continue;
    Step& step = row[peer];
    if (step.hops <= here.hops) continue;  // nearer, or as near: no way by this one
    uint8_t peer_port = ports[p].peer_port;
    if (step.hops == here.hops + 1 && step.port < peer_port) continue;
    Subnet::End at{node, static_cast<uint8_t>(p)};
    if (!across(at)) continue;
    if (step.hops == Step::kNever) next.push_back(peer);
    Path path = over({peer, peer_port}, at, here);
    step = {path.hops, path.mtu, peer_port, path.rate_bps};
  }
}

}  // namespace rocefs
