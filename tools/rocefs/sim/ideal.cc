#include "tools/rocefs/sim/ideal.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "rdma/nic/device.h"

namespace rocefs {

IdealTimes::IdealTimes(Fabric& fabric) : fabric_(fabric) {
  for (const auto& link : fabric.links()) {
    const LinkParameters& now = link->parameters();
    edges_.push_back({now.rate_bps, now.delay_ns});
  }
}

std::optional<uint64_t> IdealTimes::rate_bps(std::string_view port) const {
  const Port* at = fabric_.port(port);
  if (!at || !at->cabled()) return std::nullopt;
  return edges_[at->egress().id()].rate_bps;
}

IdealTimes::Path IdealTimes::path_between(const Port* from, const Port* to) {
  Path path;
  if (!from || !to) return path;
  for (const Link* link : fabric_.way(*from, *to)) path.push_back(edges_[link->id()]);
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
  const Port* from = fabric_.port(flow.from);
  const Port* to = fabric_.port(flow.to);
  Path forth = path_between(from, to), back = path_between(to, from);
  if (forth.empty() || back.empty()) {
    return errorf(EINVAL, "no path leads from {} to {}", flow.from, flow.to);
  }
  Framing framing{};
  framing.mtu = flow.mtu ? flow.mtu : std::min(from->mtu(), to->mtu());
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
