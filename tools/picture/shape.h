// Shape: devices, switches and cables of a network, as the files of its tree show them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/picture/looks.h"

namespace rocefs {

struct Shape {
  struct Node {
    enum class Kind { kDevice, kSwitch, kUplink } kind;
    std::string name;
  };
  // Both directions of a cable, or of a direction whose other one is not there.
  struct Cable {
    size_t a, b;                      // nodes
    unsigned a_port = 0, b_port = 0;  // port of a switch or a device, from 1; 0: of an uplink
    std::string out, back;            // directories below links/: from a to b, and from b to a
  };

  std::vector<Node> nodes;  // switches, devices, uplinks, each in the order of their numbers
  std::vector<Cable> cables;
};

// Names in the tree of a network.
struct NetworkNames {
  // Entries of kernel/debug/rocefs/fabric, class/infiniband and kernel/debug/rocefs/links.
  std::vector<std::string> switches, devices, links;
};
// Files that say where the ports of switches lead to.
inline constexpr std::string_view kSwitchPorts = "kernel/debug/rocefs/fabric/*/ports/*/link";

// `ports`: the lines of kSwitchPorts, in their order.
Shape shape_of(NetworkNames names, const std::vector<Looks::Line>& ports);

// As a JSON object; `source` is what is shown, and `stores` whether the page may store.
std::string shape_json(const Shape& shape, std::string_view source, bool stores);

}  // namespace rocefs
