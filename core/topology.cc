#include "core/topology.h"

#include <algorithm>

namespace rocefs {

std::optional<PortName> parse_port_name(std::string_view text) {
  size_t slash = text.find('/');
  PortName name{std::string(text.substr(0, slash)), 1};
  if (slash == text.npos) return name;
  std::string_view number = text.substr(slash + 1);
  if (number != "1" && number != "2") return std::nullopt;
  name.number = number == "1" ? 1 : 2;
  return name;
}

std::string link_name(const std::string& from, const std::string& to) {
  std::string name = from + "-" + to;
  std::replace(name.begin(), name.end(), '/', '.');
  return name;
}

Topology default_topology() {
  Topology topology;
  topology.devices = {
      {"mb_0", "0000:2b:00.0", {{"enp43s0", {0x02, 0, 0x4c, 0x6d, 0x62, 1}, {10, 77, 0, 1}, {}}}},
      {"mb_1", "0000:ac:00.0", {{"enp172s0", {0x02, 0, 0x4c, 0x6d, 0x62, 2}, {10, 77, 0, 2}, {}}}}};
  topology.switches = {{"sw_0"}};
  topology.links = {{"mb_0", "sw_0"}, {"mb_1", "sw_0"}};
  return topology;
}

}  // namespace rocefs
