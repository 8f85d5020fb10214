#include "tools/rocefs/instance/fabric_subnets.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "rdma/nic/device.h"
#include "rdma/wire/bytes.h"

namespace rocefs {
namespace {

constexpr uint64_t kSwitchGuids = 0x02004c7377000000;

uint64_t port_guid(const PortSpec& spec) {
  return wire::load64(gids_of(spec)[0].data() + 8);
}

}  // namespace

// Finds connected components of the fabric. Vertices are switches and single ports of devices: a
// device does not forward.
class FabricSubnets::Builder {
 public:
  Builder(Fabric& fabric, FabricSubnets& made) : fabric_(fabric), made_(made) {}

  void build() {
    find_vertices();
    for (const Vertex& vertex : vertices_) {
      for (const auto& [out, in] : vertex.cables) {
        if (by_in_.contains(out)) unite(by_in_.at(out).first, by_in_.at(in).first);
      }
    }
    for (size_t i = 0; i < vertices_.size(); ++i) add(i);
    for (size_t i = 0; i < vertices_.size(); ++i) connect(i);
    for (const auto& subnet : made_.all_) number(subnet->subnet_);
  }

 private:
  struct Vertex {
    Device* device = nullptr;
    Port* port = nullptr;  // of the device
    Switch* hub = nullptr;
    uint64_t guid = 0;
    std::vector<std::pair<const Link*, const Link*>> cables;  // out, in
    size_t parent = 0;                                        // of union-find; a root is its own
    size_t subnet = 0, node = 0;
    uint8_t number(size_t cable) const {
      return port ? port->number() : static_cast<uint8_t>(cable + 1);
    }
  };
  using Cable = std::pair<const Link*, const Link*>;

  void find_vertices() {
    for (const auto& device : fabric_.devices()) {
      for (size_t number = 1; number <= device->port_count(); ++number) {
        Port& port = device->port(number);
        Vertex& vertex = add_vertex();
        vertex.device = device.get();
        vertex.port = &port;
        vertex.guid = guid_of(device->spec().ports[0]);
        if (port.line_bps() != 0) add_cable(vertex, &port.egress(), &port.ingress());
      }
    }
    for (const auto& hub : fabric_.switches()) {
      Vertex& vertex = add_vertex();
      vertex.hub = hub.get();
      vertex.guid = kSwitchGuids + ++switches_;
      for (size_t i = 0; i < hub->port_count(); ++i) {
        add_cable(vertex, hub->port(i).egress.link, hub->port(i).ingress.link);
      }
    }
  }
  Vertex& add_vertex() {
    vertices_.emplace_back();
    vertices_.back().parent = vertices_.size() - 1;
    return vertices_.back();
  }
  // `in` leads to the vertex, `out` away from it.
  void add_cable(Vertex& vertex, const Link* out, const Link* in) {
    vertex.cables.emplace_back(out, in);
    by_in_[in] = {vertices_.size() - 1, vertex.number(vertex.cables.size() - 1)};
  }

  size_t root(size_t vertex) {
    while (vertices_[vertex].parent != vertex) {
      vertex = vertices_[vertex].parent = vertices_[vertices_[vertex].parent].parent;
    }
    return vertex;
  }
  // The vertex that comes first in the topology becomes the root.
  void unite(size_t a, size_t b) {
    a = root(a);
    b = root(b);
    vertices_[std::max(a, b)].parent = std::min(a, b);
  }

  // Vertices come in the topology's order; a device whose ports are in one subnet is one node.
  void add(size_t index) {
    Vertex& vertex = vertices_[index];
    auto [of_root, is_new] = subnets_.try_emplace(root(index), made_.all_.size());
    if (is_new) made_.all_.push_back(std::make_unique<FabricSubnet>());
    vertex.subnet = of_root->second;
    FabricSubnet& made = *made_.all_[vertex.subnet];
    auto& nodes = made.subnet_.nodes;
    bool known = !nodes.empty() && vertex.device && made.hardware_.back().device == vertex.device;
    vertex.node = known ? nodes.size() - 1 : nodes.size();
    if (!known) {
      nodes.push_back(node_of(vertex));
      made.hardware_.push_back({vertex.device, vertex.hub});
    }
    if (!vertex.port) return;
    nodes[vertex.node].ports[vertex.port->number()].member = true;
    made_.places_[vertex.port] = {vertex.subnet, {vertex.node, vertex.port->number()}};
  }

  SubnetNode node_of(const Vertex& vertex) {
    SubnetNode node;
    node.is_switch = vertex.hub != nullptr;
    node.guid = vertex.guid;
    node.name = vertex.hub ? vertex.hub->name() : vertex.device->name();
    node.ports.resize((vertex.hub ? vertex.hub->port_count() : vertex.device->port_count()) + 1);
    for (size_t number = 0; number < node.ports.size(); ++number) {
      SubnetPort& port = node.ports[number];
      if (vertex.hub) {
        port.member = true;
        port.guid = vertex.guid;
      } else if (number > 0) {
        const Port& of = vertex.device->port(number);
        port.guid = port_guid(of.spec());
        port.mtu = static_cast<uint16_t>(of.mtu());
      }
    }
    return node;
  }

  void connect(size_t index) {
    const Vertex& vertex = vertices_[index];
    auto& nodes = made_.all_[vertex.subnet]->subnet_.nodes;
    for (size_t i = 0; i < vertex.cables.size(); ++i) {
      auto far = by_in_.find(vertex.cables[i].first);
      if (far == by_in_.end()) continue;
      SubnetPort& port = nodes[vertex.node].ports[vertex.number(i)];
      port.peer = vertices_[far->second.first].node;
      port.peer_port = far->second.second;
    }
  }

  static void number(Subnet& subnet) {
    std::vector<Subnet::End> ends;  // with a LID
    std::optional<size_t> manager;
    for (size_t node = 0; node < subnet.nodes.size(); ++node) {
      const SubnetNode& at = subnet.nodes[node];
      if (at.is_switch && !manager) manager = ends.size();
      size_t last = at.is_switch ? 0 : at.ports.size() - 1;
      for (size_t port = 0; port <= last; ++port) {
        if (at.ports[port].member) ends.push_back({node, static_cast<uint8_t>(port)});
      }
    }
    subnet.manager = ends[manager.value_or(0)];
    subnet.by_lid.push_back(subnet.manager);
    for (const Subnet::End& end : ends) {
      if (end != subnet.manager) subnet.by_lid.push_back(end);
    }
    for (size_t i = 0; i < subnet.by_lid.size(); ++i) {
      const Subnet::End& end = subnet.by_lid[i];
      subnet.nodes[end.node].ports[end.port].lid = static_cast<uint16_t>(i + 1);
    }
  }

  Fabric& fabric_;
  FabricSubnets& made_;
  std::vector<Vertex> vertices_;
  size_t switches_ = 0;
  std::map<const Link*, std::pair<size_t, uint8_t>> by_in_;  // end of a link: vertex, port
  std::map<size_t, size_t> subnets_;                         // by root
};

FabricSubnets::FabricSubnets(Fabric& fabric) {
  Builder(fabric, *this).build();
}

}  // namespace rocefs
