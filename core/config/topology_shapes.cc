#include "core/config/topology_shapes.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <unordered_map>

#include "core/base/kstrto.h"
#include "core/base/units.h"

namespace rocefs {
namespace {

constexpr uint64_t kMaxLayer = 2048;  // switches in a layer, and NICs of a host
static_assert(2 * kMaxLayer <= kMaxSwitches);
constexpr uint64_t kMaxFatTree = 32;
static_assert(kMaxFatTree * kMaxFatTree * kMaxFatTree / 4 <= kMaxDevices);
constexpr std::array<std::string_view, 4> kKinds = {"star", "dumbbell", "leaf-spine", "fat-tree"};
constexpr std::string_view kKindsText = "star, dumbbell, leaf-spine or fat-tree";

Result<void> set_count(std::string_view key, std::string_view value, uint64_t most, uint64_t& out) {
  Result<void> kept = keep(key, kstrtou64(value, 0), out);
  if (kept && (out < 1 || out > most))
    return errorf(EINVAL, "{}={}: 1 to {} is wanted", key, value, most);
  return kept;
}

Result<void> set_k(std::string_view value, std::optional<uint64_t>& out) {
  Result<void> kept = keep("k", kstrtou64(value, 0), out.emplace());
  if (kept && (*out < 2 || *out > kMaxFatTree || *out % 2 != 0)) {
    return errorf(EINVAL, "k={}: an even number from 2 to {} is wanted", value, kMaxFatTree);
  }
  return kept;
}

// `key` is rate or delay; `said` is the key in the file.
Result<void> set_layer_key(ShapeLayer& layer, std::string_view key, std::string_view said,
                           std::string_view value) {
  LinkSpec scratch;
  if (Result<void> kept = set_link_key(scratch, key, value); !kept) {
    return errorf(EINVAL, "{}: {}", said, kept.error().reason);
  }
  if (key == "rate") layer.rate_bps = scratch.rate_bps;
  if (key == "delay") layer.delay_ns = scratch.delay_ns;
  return {};
}

Result<void> set_reconverge(std::string_view value, std::optional<TimeNs>& out) {
  constexpr TimeNs kMaxReconverge = 3600 * kSecond;
  Result<void> kept = keep("reconverge", parse_duration(value), out.emplace());
  if (kept && *out > kMaxReconverge) {
    return errorf(EINVAL, "reconverge={} is longer than 3600s", value);
  }
  return kept;
}

std::string numbered(std::string_view what, uint64_t n) {
  return fmt::format("{}{}", what, n);
}
std::string numbered(std::string_view what, uint64_t pod, uint64_t n) {
  return fmt::format("{}_{}_{}", what, pod, n);
}

LinkSpec cable_of(const LinkSpec& below, const ShapeLayer& layer) {
  LinkSpec cable = below;
  cable.rate_bps = layer.rate_bps.value_or(cable.rate_bps);
  cable.delay_ns = layer.delay_ns.value_or(cable.delay_ns);
  return cable;
}

// Builds the topology of one shape. The order of switches and cables gives them their numbers, and
// so decides about LIDs and about the paths of ECMP.
class ShapeBuilder {
 public:
  explicit ShapeBuilder(const Shape& shape) : shape_(shape) {}

  Result<Topology> build() {
    if (Result<void> checked = check_keys(); !checked) return checked.error();
    Result<void> built = shape_.kind == "star"         ? build_star()
                         : shape_.kind == "dumbbell"   ? build_dumbbell()
                         : shape_.kind == "leaf-spine" ? build_leaf_spine()
                                                       : build_fat_tree();
    if (!built) return built.error();
    if (Result<void> checked = check_ports(); !checked) return checked.error();
    topology_.reconverge = shape_.reconverge;
    return std::move(topology_);
  }

 private:
  Result<void> check_keys() const {
    const std::string& kind = shape_.kind;
    if (kind.empty()) return errorf(EINVAL, "[topology] without kind={}", kKindsText);
    if (kind == "fat-tree" && !shape_.k) return Error{EINVAL, "kind=fat-tree without k="};
    if (kind != "fat-tree" && shape_.k) return errorf(EINVAL, "kind={} has no k=", kind);
    bool agg = shape_.agg.rate_bps || shape_.agg.delay_ns;
    if (kind != "fat-tree" && agg) {
      return errorf(EINVAL,
                    "kind={} has no aggregation switches: core_rate= and core_delay= are "
                    "those of the links between switches",
                    kind);
    }
    if (kind != "leaf-spine" && shape_.nics) {
      return errorf(EINVAL, "kind={} has no nics=: rails are those of a leaf-spine", kind);
    }
    if (kind != "leaf-spine" && kind != "dumbbell" && shape_.cables) {
      return errorf(EINVAL, "kind={} has no cables=", kind);
    }
    return {};
  }

  Result<void> check_ports() const {
    std::unordered_map<std::string_view, size_t> links;
    for (const LinkSpec& link : topology_.links) {
      ++links[link.a];
      ++links[link.b];
    }
    for (const SwitchSpec& one : topology_.switches) {
      if (links[one.name] <= kMaxSwitchPorts) continue;
      return errorf(EINVAL, "{} would have {} links: a switch has at most {}", one.name,
                    links[one.name], kMaxSwitchPorts);
    }
    return {};
  }

  uint64_t hosts() const { return shape_.hosts.value_or(2); }

  Result<void> check_even(uint64_t groups, std::string_view what) const {
    if (hosts() % groups == 0) return {};
    return errorf(EINVAL, "hosts={} do not spread evenly over {} {}", hosts(), groups, what);
  }

  void add_switch(const std::string& name) {
    topology_.switches.emplace_back(shape_.hub).name = name;
  }

  void cable(const std::string& a, const std::string& b, const LinkSpec& like, uint64_t count = 1) {
    for (uint64_t i = 1; i <= count; ++i) {
      LinkSpec& link = topology_.links.emplace_back(like);
      link.a = a;
      link.b = b;
      link.parallel = static_cast<unsigned>(i);
    }
  }

  DeviceSpec& add_device(const std::string& name, const std::string& at) {
    topology_.devices.push_back(nth_device(name, topology_.devices.size() + 1));
    topology_.devices.back().ports[0].mtu = shape_.mtu;
    cable(name, at, shape_.cable);
    return topology_.devices.back();
  }

  Result<void> build_star() {
    add_switch("sw_0");
    for (uint64_t i = 0; i < hosts(); ++i) add_device(numbered("h", i), "sw_0");
    return {};
  }

  Result<void> build_dumbbell() {
    if (Result<void> checked = check_even(2, "switches"); !checked) return checked;
    for (uint64_t i : {0, 1}) add_switch(numbered("sw_", i));
    for (uint64_t i = 0; i < hosts(); ++i) {
      add_device(numbered("h", i), numbered("sw_", i / (hosts() / 2)));
    }
    cable("sw_0", "sw_1", cable_of(shape_.cable, shape_.core), shape_.cables.value_or(1));
    return {};
  }

  Result<void> build_leaf_spine() {
    uint64_t rails = shape_.nics.value_or(1), groups = shape_.leaves / rails;
    if (shape_.leaves % rails != 0) {
      return errorf(EINVAL, "leaves={} is no multiple of nics={}: each NIC of a host has its leaf",
                    shape_.leaves, rails);
    }
    if (hosts() * rails > kMaxDevices) {
      return errorf(EINVAL, "hosts={} with nics={}: more than {} devices", hosts(), rails,
                    kMaxDevices);
    }
    Result<void> checked = check_even(groups, rails == 1 ? "switches" : "groups of leaves");
    if (!checked) return checked;
    for (uint64_t i = 0; i < shape_.leaves; ++i) add_switch(numbered("leaf_", i));
    for (uint64_t i = 0; i < shape_.spines; ++i) add_switch(numbered("spine_", i));
    for (uint64_t host = 0; host < hosts(); ++host) {
      uint64_t first = host / (hosts() / groups) * rails;
      std::string name = numbered("h", host);
      for (uint64_t rail = 0; rail < rails; ++rail) {
        std::string leaf = numbered("leaf_", first + rail);
        if (!shape_.nics) {
          add_device(name, leaf);
        } else {
          add_device(fmt::format("{}_{}", name, rail), leaf).host = name;
        }
      }
    }
    LinkSpec core = cable_of(shape_.cable, shape_.core);
    for (uint64_t leaf = 0; leaf < shape_.leaves; ++leaf) {
      for (uint64_t spine = 0; spine < shape_.spines; ++spine) {
        cable(numbered("leaf_", leaf), numbered("spine_", spine), core, shape_.cables.value_or(1));
      }
    }
    return {};
  }

  Result<void> build_fat_tree() {
    uint64_t pods = *shape_.k, half = pods / 2, edges = pods * half;
    uint64_t hosts = shape_.hosts.value_or(edges * half);
    if (hosts > edges * half) {
      return errorf(EINVAL, "hosts={}: a fat-tree of k={} has at most {}", hosts, pods,
                    edges * half);
    }
    for (std::string_view layer : {"edge", "agg"}) {
      for (uint64_t i = 0; i < edges; ++i) add_switch(numbered(layer, i / half, i % half));
    }
    for (uint64_t i = 0; i < half * half; ++i) add_switch(numbered("core_", i));
    for (uint64_t i = 0; i < hosts; ++i) {
      uint64_t edge = i * edges / hosts;
      add_device(numbered("h", i), numbered("edge", edge / half, edge % half));
    }
    LinkSpec agg = cable_of(shape_.cable, shape_.agg), core = cable_of(agg, shape_.core);
    for (uint64_t edge = 0; edge < edges; ++edge) {
      for (uint64_t i = 0; i < half; ++i) {
        cable(numbered("edge", edge / half, edge % half), numbered("agg", edge / half, i), agg);
      }
    }
    for (uint64_t at = 0; at < edges; ++at) {
      for (uint64_t i = 0; i < half; ++i) {
        cable(numbered("agg", at / half, at % half), numbered("core_", at % half * half + i), core);
      }
    }
    return {};
  }

  const Shape& shape_;
  Topology topology_;
};

}  // namespace

Result<void> set_shape_key(Shape& shape, std::string_view key, std::string_view value) {
  if (key == "kind") {
    if (std::find(kKinds.begin(), kKinds.end(), value) == kKinds.end()) {
      return errorf(EINVAL, "kind={}: {} is wanted", value, kKindsText);
    }
    shape.kind = value;
    return {};
  }
  if (key == "hosts") return set_count(key, value, kMaxDevices, shape.hosts.emplace());
  if (key == "leaves") return set_count(key, value, kMaxLayer, shape.leaves);
  if (key == "spines") return set_count(key, value, kMaxLayer, shape.spines);
  if (key == "nics") return set_count(key, value, kMaxLayer, shape.nics.emplace());
  if (key == "cables") return set_count(key, value, kMaxSwitchPorts, shape.cables.emplace());
  if (key == "k") return set_k(value, shape.k);
  if (key == "mtu") return set_mtu(value, shape.mtu);
  if (key == "reconverge") return set_reconverge(value, shape.reconverge);
  if (key == "buffer") return set_switch_key(shape.hub, key, value);
  if (key == "rate" || key == "delay") return set_link_key(shape.cable, key, value);
  if (key == "agg_rate") return set_layer_key(shape.agg, "rate", key, value);
  if (key == "agg_delay") return set_layer_key(shape.agg, "delay", key, value);
  if (key == "core_rate") return set_layer_key(shape.core, "rate", key, value);
  if (key == "core_delay") return set_layer_key(shape.core, "delay", key, value);
  return errorf(EINVAL,
                "unknown key {} in [topology]: kind, hosts, leaves, spines, nics, k, cables, mtu, "
                "rate, delay, buffer, agg_rate, agg_delay, core_rate, core_delay or reconverge is "
                "wanted",
                key);
}

Result<Topology> build_shape(const Shape& shape) {
  return ShapeBuilder(shape).build();
}

}  // namespace rocefs
