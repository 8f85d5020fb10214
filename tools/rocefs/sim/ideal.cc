#include "tools/rocefs/sim/ideal.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "rdma/nic/device.h"

namespace rocefs {

IdealTimes::IdealTimes(Fabric& fabric, const Topology& topology) {
  auto add = [this](const std::string& name, Port* port) {
    places_.emplace(name, static_cast<uint32_t>(nodes_.size()));
    nodes_.push_back({port, {}});
  };
  for (const auto& device : fabric.devices()) {
    for (size_t number = 1; number <= device->port_count(); ++number) {
      add(PortName{device->name(), static_cast<unsigned>(number)}.text(), &device->port(number));
    }
  }
  for (const SwitchSpec& spec : topology.switches) add(spec.name, nullptr);
  for (const UplinkSpec& spec : topology.uplinks) add(spec.name, nullptr);
  std::unordered_map<std::string, const Link*> links;
  for (const auto& link : fabric.links()) links.emplace(link->name(), link.get());
  for (const LinkSpec& cable : topology.links) {
    for (const auto& [near, far] : {std::pair(cable.a, cable.b), std::pair(cable.b, cable.a)}) {
      const LinkParameters& now = links.at(link_name(near, far))->parameters();
      nodes_[places_.at(near)].edges.push_back({places_.at(far), now.rate_bps, now.delay_ns});
    }
  }
}

std::optional<uint32_t> IdealTimes::find(std::string_view port) const {
  std::optional<PortName> name = parse_port_name(port);
  auto found = name ? places_.find(name->text()) : places_.end();
  if (found == places_.end() || !nodes_[found->second].port) return std::nullopt;
  return found->second;
}

std::optional<uint64_t> IdealTimes::rate_bps(std::string_view port) const {
  std::optional<uint32_t> place = find(port);
  if (!place || nodes_[*place].edges.empty()) return std::nullopt;
  return nodes_[*place].edges.front().rate_bps;
}

// Breadth-first search through switches.
const std::vector<IdealTimes::Arrival>& IdealTimes::search(uint32_t from) {
  auto [found, fresh] = searches_.try_emplace(from);
  std::vector<Arrival>& came = found->second;
  if (!fresh) return came;
  came.resize(nodes_.size());
  std::vector<uint32_t> frontier{from};
  came[from].from = from;
  for (size_t i = 0; i < frontier.size(); ++i) {
    const uint32_t at = frontier[i];
    const std::vector<Edge>& edges = nodes_[at].edges;
    for (uint32_t edge = 0; edge < edges.size(); ++edge) {
      const uint32_t to = edges[edge].to;
      if (came[to].from != kNone) continue;
      came[to] = {at, edge};
      if (!nodes_[to].port) frontier.push_back(to);
    }
  }
  return came;
}

// Searches from the switch next to the port, which many ports share.
IdealTimes::Path IdealTimes::path_between(uint32_t from, uint32_t to) {
  Path path;
  if (nodes_[from].edges.empty()) return path;
  const Edge& first = nodes_[from].edges.front();
  if (first.to != to) {
    if (nodes_[first.to].port) return path;
    const std::vector<Arrival>& came = search(first.to);
    if (came[to].from == kNone) return path;
    for (uint32_t at = to; at != first.to; at = came[at].from) {
      path.push_back(nodes_[came[at].from].edges[came[at].edge]);
    }
  }
  path.push_back(first);
  return path;
}

namespace {

// Octets of a flow's packets and messages.
struct Framing {
  uint64_t mtu, headers;
  bool read, writes;
};
constexpr uint64_t kReth = 16, kAeth = 4;

double serialization_ns(uint64_t octets, uint64_t rate_bps) {
  return static_cast<double>((octets + kEthernetOverhead) * 8) * 1e9 /
         static_cast<double>(rate_bps);
}

double message_ns(const Framing& framing, uint64_t rate_bps, uint64_t octets) {
  uint64_t full = octets / framing.mtu, rest = octets % framing.mtu;
  double time =
      static_cast<double>(full) * serialization_ns(framing.mtu + framing.headers, rate_bps);
  if (rest > 0 || full == 0) {
    time += serialization_ns((rest + 3) / 4 * 4 + framing.headers, rate_bps);
  }
  if (!framing.writes && !framing.read) return time;
  return time + static_cast<double>(framing.read ? 2 * kAeth : kReth) * 8e9 /
                    static_cast<double>(rate_bps);
}

Result<std::optional<uint64_t>> input_octets(const FlowSpec& flow) {
  if (flow.input.empty()) return std::optional<uint64_t>();
  struct stat status;
  if (::stat(flow.input.c_str(), &status) != 0) {
    return errorf(errno, "{}: {}", flow.input, std::strerror(errno));
  }
  return std::optional(static_cast<uint64_t>(status.st_size));
}

}  // namespace

Result<double> IdealTimes::fct_ns(const FlowSpec& flow) {
  std::optional<uint32_t> from = find(flow.from), to = find(flow.to);
  Path forth = from && to ? path_between(*from, *to) : Path();
  Path back = from && to ? path_between(*to, *from) : Path();
  if (forth.empty() || back.empty()) {
    return errorf(EINVAL, "no path leads from {} to {}", flow.from, flow.to);
  }
  Framing framing{};
  framing.mtu = flow.mtu ? flow.mtu : std::min(nodes_[*from].port->mtu(), nodes_[*to].port->mtu());
  framing.headers = (flow.gid == 0 ? wire::kIpv6Len : wire::kIpv4Len) + wire::kUdpLen +
                    wire::kBthLen + wire::kIcrcLen;
  framing.read = flow.op == FlowOp::kRead;
  framing.writes = flow_op_info(flow.op).writes();
  const Path& path = framing.read ? back : forth;
  auto slowest = std::min_element(path.begin(), path.end(), [](const Edge& a, const Edge& b) {
    return a.rate_bps < b.rate_bps;
  });
  Result<std::optional<uint64_t>> file = input_octets(flow);
  if (!file) return file.error();
  Result<FlowPlan> plan = FlowPlan::of(flow, *file);
  if (!plan) return plan.error();
  auto message = [&](uint64_t octets) { return message_ns(framing, slowest->rate_bps, octets); };
  uint64_t before = plan->count - 1, last = *file ? **file - before * flow.size : flow.size;
  double total = message(last);
  if (before > 0) total += message(flow.size) * static_cast<double>(before);
  uint64_t longest = before > 0 ? flow.size : last;
  for (const Edge& edge : path) {
    total += static_cast<double>(edge.delay_ns);
    if (&edge == &*slowest) continue;
    total += serialization_ns(std::min(framing.mtu, longest) + framing.headers, edge.rate_bps);
  }
  if (is_unreliable(flow.op)) return total;
  uint64_t returned = framing.headers + (framing.read ? kReth : kAeth);
  for (const Edge& edge : framing.read ? forth : back) {
    total += static_cast<double>(edge.delay_ns) + serialization_ns(returned, edge.rate_bps);
  }
  return total;
}

}  // namespace rocefs
