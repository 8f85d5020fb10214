#include "core/config/topology_shapes.h"

#include <cerrno>

#include "core/base/kstrto.h"
#include "core/base/units.h"

namespace rocefs {
namespace {

constexpr uint64_t kMaxSwitches = 64;

Result<void> set_count(std::string_view key, std::string_view value, uint64_t most, uint64_t& out) {
  Result<void> kept = keep(key, kstrtou64(value, 0), out);
  if (kept && (out < 1 || out > most))
    return errorf(EINVAL, "{}={}: 1 to {} is wanted", key, value, most);
  return kept;
}

Result<void> set_core_rate(std::string_view value, std::optional<uint64_t>& out) {
  LinkSpec scratch;
  Result<void> kept = set_link_key(scratch, "rate", value);
  if (kept) out = scratch.rate_bps;
  return kept;
}
Result<void> set_core_delay(std::string_view value, std::optional<TimeNs>& out) {
  LinkSpec scratch;
  Result<void> kept = set_link_key(scratch, "delay", value);
  if (kept) out = scratch.delay_ns;
  return kept;
}

std::string numbered(std::string_view what, uint64_t n) {
  return fmt::format("{}{}", what, n);
}

}  // namespace

Result<void> set_shape_key(Shape& shape, std::string_view key, std::string_view value) {
  if (key == "kind") {
    if (value != "star" && value != "dumbbell" && value != "leaf-spine") {
      return errorf(EINVAL, "kind={}: star, dumbbell or leaf-spine is wanted", value);
    }
    shape.kind = value;
    return {};
  }
  if (key == "hosts") return set_count(key, value, kMaxDevices, shape.hosts);
  if (key == "leaves") return set_count(key, value, kMaxSwitches, shape.leaves);
  if (key == "spines") return set_count(key, value, kMaxSwitches, shape.spines);
  if (key == "mtu") return set_mtu(value, shape.mtu);
  if (key == "rate" || key == "delay" || key == "buffer") {
    return set_link_key(shape.cable, key, value);
  }
  if (key == "core_rate") return set_core_rate(value, shape.core_rate_bps);
  if (key == "core_delay") return set_core_delay(value, shape.core_delay_ns);
  return errorf(EINVAL,
                "unknown key {} in [topology]: kind, hosts, leaves, spines, mtu, rate, delay, "
                "buffer, core_rate or core_delay is wanted",
                key);
}

Result<Topology> build_shape(const Shape& shape) {
  if (shape.kind.empty())
    return Error{EINVAL, "[topology] without kind=star, dumbbell or leaf-spine"};
  uint64_t groups = shape.kind == "star" ? 1 : shape.kind == "dumbbell" ? 2 : shape.leaves;
  if (shape.hosts % groups != 0) {
    return errorf(EINVAL, "hosts={} do not spread evenly over {} switches", shape.hosts, groups);
  }
  Topology topology;
  bool fabric = shape.kind == "leaf-spine";
  if (fabric && shape.hosts / groups + shape.spines > kMaxSwitchPorts) {
    return errorf(EINVAL, "hosts={} and spines={}: a leaf has at most {} links", shape.hosts,
                  shape.spines, kMaxSwitchPorts);
  }
  std::string_view edge = fabric ? "leaf_" : "sw_";
  for (uint64_t i = 0; i < groups; ++i) topology.switches.push_back({numbered(edge, i)});
  uint64_t spines = fabric ? shape.spines : 0;
  for (uint64_t i = 0; i < spines; ++i) topology.switches.push_back({numbered("spine_", i)});
  auto cable = [&](std::string a, std::string b, const LinkSpec& like) {
    topology.links.push_back(like);
    topology.links.back().a = std::move(a);
    topology.links.back().b = std::move(b);
  };
  for (uint64_t i = 0; i < shape.hosts; ++i) {
    topology.devices.push_back(nth_device(numbered("h", i), i + 1));
    topology.devices.back().ports[0].mtu = shape.mtu;
    cable(numbered("h", i), numbered(edge, i / (shape.hosts / groups)), shape.cable);
  }
  LinkSpec core = shape.cable;
  core.rate_bps = shape.core_rate_bps.value_or(core.rate_bps);
  core.delay_ns = shape.core_delay_ns.value_or(core.delay_ns);
  if (shape.kind == "dumbbell") cable("sw_0", "sw_1", core);
  for (uint64_t leaf = 0; leaf < groups; ++leaf) {
    for (uint64_t spine = 0; spine < spines; ++spine) {
      cable(numbered(edge, leaf), numbered("spine_", spine), core);
    }
  }
  return topology;
}

}  // namespace rocefs
