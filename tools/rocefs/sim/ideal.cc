#include "tools/rocefs/sim/ideal.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <map>

#include "rdma/nic/device.h"

namespace rocefs {
namespace {

// Links of a shortest path, found by breadth-first search; empty if there is none.
std::vector<const Link*> path_between(Fabric& fabric, const Topology& topology,
                                      const std::string& from, const std::string& to) {
  std::map<std::string, std::string> before{{from, from}};
  std::deque<std::string> frontier{from};
  while (!frontier.empty() && !before.contains(to)) {
    std::string at = frontier.front();
    frontier.pop_front();
    for (const LinkSpec& link : topology.links) {
      for (const auto& [near, far] : {std::pair(link.a, link.b), std::pair(link.b, link.a)}) {
        if (near == at && before.emplace(far, near).second) frontier.push_back(far);
      }
    }
  }
  std::vector<const Link*> path;
  if (!before.contains(to)) return path;
  for (std::string at = to; at != from; at = before[at]) {
    path.push_back(fabric.link(link_name(before[at], at)));
  }
  return path;
}

double propagation(const std::vector<const Link*>& path) {
  double sum = 0;
  for (const Link* link : path) sum += static_cast<double>(link->parameters().delay_ns);
  return sum;
}

// Time of one short packet over the path, store and forward.
double crossing(const std::vector<const Link*>& path, uint64_t octets) {
  double sum = propagation(path);
  for (const Link* link : path) sum += link->serialization_ns(octets);
  return sum;
}

}  // namespace

Result<double> ideal_fct_ns(Fabric& fabric, const Topology& topology, const FlowSpec& flow) {
  Port* from = fabric.port(flow.from);
  Port* to = fabric.port(flow.to);
  auto name = [](Port& port) { return PortName{port.host().name(), port.number()}.text(); };
  auto forth = path_between(fabric, topology, name(*from), name(*to));
  auto back = path_between(fabric, topology, name(*to), name(*from));
  if (forth.empty() || back.empty()) {
    return errorf(EINVAL, "no path leads from {} to {}", flow.from, flow.to);
  }
  uint64_t mtu = flow.mtu ? flow.mtu : std::min(from->mtu(), to->mtu());
  uint64_t headers = (flow.gid == 0 ? wire::kIpv6Len : wire::kIpv4Len) + wire::kUdpLen +
                     wire::kBthLen + wire::kIcrcLen;
  constexpr uint64_t kReth = 16, kAeth = 4;
  bool read = flow.op == FlowOp::kRead;
  const auto& path = read ? back : forth;
  auto slowest = *std::min_element(path.begin(), path.end(), [](const Link* a, const Link* b) {
    return a->parameters().rate_bps < b->parameters().rate_bps;
  });
  auto message = [&](uint64_t octets) {
    uint64_t full = octets / mtu, rest = octets % mtu;
    double time = static_cast<double>(full) * slowest->serialization_ns(mtu + headers);
    if (rest > 0 || full == 0) time += slowest->serialization_ns((rest + 3) / 4 * 4 + headers);
    if (!flow_op_info(flow.op).writes() && !read) return time;
    return time + static_cast<double>(read ? 2 * kAeth : kReth) * 8e9 /
                      static_cast<double>(slowest->parameters().rate_bps);
  };
  std::optional<uint64_t> file;
  if (!flow.input.empty()) {
    struct stat status;
    if (::stat(flow.input.c_str(), &status) != 0) {
      return errorf(errno, "{}: {}", flow.input, std::strerror(errno));
    }
    file = static_cast<uint64_t>(status.st_size);
  }
  Result<FlowPlan> plan = FlowPlan::of(flow, file);
  if (!plan) return plan.error();
  uint64_t before = plan->count - 1, last = file ? *file - before * flow.size : flow.size;
  double total =
      message(flow.size) * static_cast<double>(before) + message(last) + propagation(path);
  uint64_t longest = before > 0 ? flow.size : last;
  for (const Link* link : path) {
    if (link != slowest) total += link->serialization_ns(std::min(mtu, longest) + headers);
  }
  if (is_unreliable(flow.op)) return total;
  return total + crossing(read ? forth : back, headers + (read ? kReth : kAeth));
}

}  // namespace rocefs
