#include "tools/picture/shape.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "core/base/text.h"
#include "core/config/topology.h"

namespace rocefs {
namespace {

using Kind = Shape::Node::Kind;

// An end of a cable as ports/N/link of a switch names it: NODE, or DEVICE/PORT.
struct End {
  std::string node;
  unsigned port = 1;
  explicit End(std::string_view text) {
    const size_t slash = std::min(text.find('/'), text.size());
    node = text.substr(0, slash);
    if (slash < text.size()) port = static_cast<unsigned>(text[slash + 1] - '0');
  }
};

class Builder {
 public:
  Shape build(NetworkNames names, const std::vector<Looks::Line>& ports) {
    for (std::string& name : names.switches) node(std::move(name), Kind::kSwitch);
    for (std::string& name : names.devices) node(std::move(name), Kind::kDevice);
    for (std::string& name : names.links) links_.insert(std::move(name));
    add_switch_ports(ports);
    add_direct_cables();
    return std::move(shape_);
  }

 private:
  size_t node(std::string name, Kind kind) {
    auto [at, added] = numbers_.try_emplace(name, shape_.nodes.size());
    if (added) shape_.nodes.push_back({kind, std::move(name)});
    return at->second;
  }

  void add_switch_ports(const std::vector<Looks::Line>& ports) {
    for (const Looks::Line& line : ports) {
      const std::vector<std::string_view> parts = split(line.path, "/");
      const std::string from(parts[4]);
      const auto port = static_cast<unsigned>(std::stoul(std::string(parts[6])));
      const std::string to(line.text);
      const unsigned parallel = ++parallels_[{from, to}];
      const std::string out = link_name(from, to, parallel);
      const std::string back = link_name(to, from, parallel);
      if (auto known = cables_.find(back); known != cables_.end()) {
        shape_.cables[known->second].b_port = port;
        continue;
      }
      const End end(to);
      const size_t a = node(from, Kind::kSwitch), b = node(end.node, Kind::kUplink);
      const bool device = shape_.nodes[b].kind == Kind::kDevice;
      cables_[out] = shape_.cables.size();
      shape_.cables.push_back({a, b, port, device ? end.port : 0, out, back});
      links_.erase(out);
      links_.erase(back);
    }
  }

  // Cables without a switch: of two devices, or of a device and an uplink.
  void add_direct_cables() {
    while (!links_.empty()) {
      const std::string name = *links_.begin();
      links_.erase(links_.begin());
      for (size_t at = name.find('-'); at != name.npos; at = name.find('-', at + 1)) {
        std::string from = name.substr(0, at), to = name.substr(at + 1);
        const std::string back = to + "-" + from;
        const auto a = device(from);
        if (!a || !links_.contains(back)) continue;
        links_.erase(back);
        const auto b = device(to);
        const size_t far = b ? b->first : node(to, Kind::kUplink);
        shape_.cables.push_back({a->first, far, a->second, b ? b->second : 0, name, back});
        break;
      }
    }
  }

  // Device and port of a link's end: NAME or NAME.PORT.
  std::optional<std::pair<size_t, unsigned>> device(const std::string& end) const {
    for (auto [name, port] : {std::pair(end, 1u), std::pair(end.substr(0, end.rfind('.')), 2u)}) {
      auto found = numbers_.find(name);
      if (found != numbers_.end() && shape_.nodes[found->second].kind == Kind::kDevice) {
        return std::pair(found->second, port);
      }
    }
    return std::nullopt;
  }

  Shape shape_;
  std::map<std::string, size_t> numbers_;  // of nodes
  std::set<std::string> links_;            // not yet part of a cable
  std::map<std::string, size_t> cables_;   // by the link out of a switch
  std::map<std::pair<std::string, std::string>, unsigned> parallels_;
};

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::kSwitch:
      return "switch";
    case Kind::kDevice:
      return "device";
    default:
      return "uplink";
  }
}

}  // namespace

Shape shape_of(NetworkNames names, const std::vector<Looks::Line>& ports) {
  return Builder().build(std::move(names), ports);
}

std::string shape_json(const Shape& shape, std::string_view source, bool stores) {
  using nlohmann::json;
  json nodes = json::array(), cables = json::array();
  for (const Shape::Node& node : shape.nodes) {
    nodes.push_back({{"name", node.name}, {"kind", name_of(node.kind)}});
  }
  for (const Shape::Cable& cable : shape.cables) {
    cables.push_back({{"a", cable.a},
                      {"b", cable.b},
                      {"aPort", cable.a_port},
                      {"bPort", cable.b_port},
                      {"out", cable.out},
                      {"back", cable.back}});
  }
  const json all = {{"mount", source},
                    {"stores", stores},
                    {"nodes", std::move(nodes)},
                    {"cables", std::move(cables)}};
  return all.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace rocefs
