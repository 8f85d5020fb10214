#include "mad_cc/routes.h"

#include <algorithm>
#include <utility>

#include "mad_cc/attributes.h"

namespace rocefs {

Routes::Routes(const Subnet& subnet, const SubnetState& state)
    : subnet_(&subnet), nodes_(subnet.nodes.size()), rows_(subnet.nodes.size()) {
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const SubnetNode& node = subnet.nodes[i];
    nodes_[i].present = state.present(i);
    nodes_[i].ports.resize(node.ports.size());
    for (size_t p = node.is_switch ? 0 : 1; p < node.ports.size(); ++p) {
      Subnet::End at{i, static_cast<uint8_t>(p)};
      bool cable = node.ports[p].peer != SubnetPort::kNoPeer && state.up(i, at.port);
      nodes_[i].ports[p] = {cable, mad::rate_bps(subnet, state, at)};
    }
  }
}

std::optional<Subnet::End> Routes::across(Subnet::End at) const {
  if (!port(at).up) return std::nullopt;
  const SubnetPort& own = subnet_->at(at);
  Subnet::End end{own.peer, own.peer_port};
  if (!nodes_[at.node].present || !nodes_[end.node].present) return std::nullopt;
  return end;
}

std::optional<Routes::Path> Routes::path(Subnet::End from, Subnet::End to) const {
  if (!nodes_[from.node].present || !nodes_[to.node].present) return std::nullopt;
  bool from_switch = subnet_->nodes[from.node].is_switch,
       to_switch = subnet_->nodes[to.node].is_switch;
  // A port without a cable is no end of any path, not even of one to itself.
  auto entry = from_switch ? from : across(from);
  auto exit = to_switch ? to : across(to);
  if (!entry || !exit) return std::nullopt;
  if (from == to) return Path{0, port(from).rate_bps, subnet_->at(from).mtu};
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
  Path path{rest.hops + 1, port(at).rate_bps, std::min(subnet_->at(at).mtu, subnet_->at(to).mtu)};
  if (rest.hops == 0) return path;
  return {path.hops, std::min(path.rate_bps, rest.rate_bps), std::min(path.mtu, rest.mtu)};
}

uint8_t Routes::forward(size_t switch_node, Subnet::End to) const {
  if (switch_node == to.node) return 0;
  bool to_switch = subnet_->nodes[to.node].is_switch;
  auto exit = to_switch ? std::optional(to) : across(to);
  if (!exit || !nodes_[to.node].present || !subnet_->nodes[exit->node].is_switch) return kNoWay;
  if (exit->node == switch_node) return exit->port;
  return towards(exit->node)[switch_node].port;
}

const Routes::Row& Routes::towards(size_t switch_node) const {
  Row& row = rows_[switch_node];
  if (!row.empty()) return row;
  row.resize(nodes_.size());
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
  effort_ += nodes_[node].ports.size();
  for (size_t p = 1; p < nodes_[node].ports.size(); ++p) {
    Subnet::End at{node, static_cast<uint8_t>(p)};
    auto there = across(at);
    if (!there || !subnet_->nodes[there->node].is_switch) continue;
    Step& step = row[there->node];
    if (step.hops == Step::kNever) next.push_back(there->node);
    if (step.hops <= here.hops) continue;  // nearer, or as near: no way by this one
    if (step.hops == here.hops + 1 && step.port < there->port) continue;
    Path path = over(*there, at, here);
    step = {path.hops, path.mtu, there->port, path.rate_bps};
  }
}

}  // namespace rocefs
