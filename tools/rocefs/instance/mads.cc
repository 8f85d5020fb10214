#include "tools/rocefs/instance/mads.h"

#include <fmt/format.h>

#include "core/tree/function_file.h"
#include "mad_cc/net/mad_network.h"
#include "mad_cc/port/mad_port.h"
#include "mad_cc/sa/sa.h"
#include "mad_cc/umad/issm_file.h"
#include "mad_cc/umad/umad_file.h"
#include "rdma/nic/device.h"

namespace rocefs {

namespace {

std::string function_of(const Device& device) {
  const std::string& pci = device.spec().pci;
  return fmt::format("devices/pci{}/{}", pci.substr(0, 7), pci);
}
// Directory of the device's umads.
std::string classes_of(const Device& device) {
  return function_of(device) + "/infiniband_mad";
}

}  // namespace

// MADs of one subnet.
struct Mads::SubnetMads {
  MadNetwork network;
  SubnetAdministrator administrator;

  SubnetMads(FabricSubnet& subnet, Scheduler& scheduler, uint64_t seed)
      : network(subnet.subnet(), subnet, scheduler),
        administrator(subnet.subnet(), subnet, scheduler, seed, network) {
    network.attach_administrator(administrator);
  }
};

// MADs of one port.
struct Mads::PortMads {
  Port& port;
  const size_t index;  // N of umadN
  MadNetwork& network;
  const Subnet::End end;
  MadPort mads;

  PortMads(Port& at, size_t number, MadNetwork& of, Subnet::End place, Scheduler& scheduler)
      : port(at), index(number), network(of), end(place), mads(of, scheduler) {}
  std::string umad() const { return fmt::format("umad{}", index); }
  std::string issm() const { return fmt::format("issm{}", index); }
};

Mads::Mads(Parts parts)
    : parts_(std::move(parts)),
      subnets_(parts_.fabric),
      readers_(ReaderMemory::create(parts_.control)) {
  Scheduler& scheduler = parts_.engine.scheduler();
  for (size_t i = 0; i < subnets_.all().size(); ++i) {
    FabricSubnet& subnet = *subnets_.all()[i];
    subnet.on_set_link(parts_.set_link);
    subnet_mads_.push_back(
        std::make_unique<SubnetMads>(subnet, scheduler, parts_.fabric.seed() + i));
  }
  std::vector<SaFiles::Port> named;
  for (const auto& device : parts_.fabric.devices()) {
    for (unsigned number = 1; number <= device->port_count(); ++number) {
      Port& port = device->port(number);
      const Subnet& subnet = subnets_.subnet_of(port);
      Subnet::End end = subnets_.end_of(port);
      port.set_lids({subnet.at(end).lid, subnet.manager_lid()});
      MadNetwork& network = subnet_mads_[subnets_.index_of(port)]->network;
      ports_.push_back(std::make_unique<PortMads>(port, ports_.size(), network, end, scheduler));
      by_device_[device.get()].push_back(ports_.back().get());
      MadPort& mads = ports_.back()->mads;
      network.attach(end, mads);
      device->on_presence([&mads](bool present) { present ? mads.arrive() : mads.leave(); });
      named.push_back({{device->name(), number}, &mads, subnet.manager_lid()});
    }
  }
  auto configure = [this](const SaSettings& settings) {
    for (const auto& subnet : subnet_mads_) subnet->administrator.configure(settings);
  };
  sa_ = std::make_unique<SaFiles>(SaFiles::Parts{parts_.tree, parts_.engine, parts_.debug + "/sa",
                                                 parts_.semantics, std::move(named), configure});
  limits_ = std::make_unique<LimiterFiles>(parts_.tree, parts_.engine, sa_->knobs());
  // libibumad refuses other versions.
  parts_.tree.add_file("class/infiniband_mad/abi_version",
                       constant("5", "ABI version of umadN (IB_USER_MAD_ABI_VERSION)"));
}

Mads::~Mads() = default;

void Mads::bound(Tree&, const std::string& directory, Device& device) {
  for (PortMads* port : by_device_.at(&device)) {
    limits_->bind(directory, port->port.number(), port->mads);
    for (const auto& [name, make_file] : nodes_of(*port)) add_node(*port, name, make_file);
  }
}

void Mads::unbound(Device& device) {
  for (PortMads* port : by_device_.at(&device)) {
    remove_umad(*port);
    limits_->unbind(port->mads);
  }
  parts_.tree.remove(classes_of(device));
}

std::vector<std::pair<std::string, Mads::MakeFile>> Mads::nodes_of(PortMads& port) {
  auto make_umad = [this, &port] {
    return make_umad_file(parts_.engine, port.mads, readers_, parts_.warn);
  };
  auto make_issm = [this, &port] {
    auto set_manager = [&network = port.network, end = port.end](bool open) {
      network.set_manager(end, open);
    };
    return make_issm_file(parts_.engine, set_manager);
  };
  return {{port.umad(), make_umad}, {port.issm(), make_issm}};
}

void Mads::add_node(const PortMads& port, const std::string& name, const MakeFile& make_file) {
  Tree& tree = parts_.tree;
  std::string directory = classes_of(device_of(port.port)) + "/" + name;
  tree.add_later(directory, [&tree, directory, &port] {
    tree.add_file(directory + "/ibdev",
                  constant(port.port.host().name(), "the RDMA device of umadN and issmN"));
    tree.add_file(directory + "/port",
                  constant(fmt::format("{}", port.port.number()),
                           "the port whose MADs umadN sends and receives, and that issmN marks"));
    tree.add_link(directory + "/device", function_of(device_of(port.port)));
    tree.add_link(directory + "/subsystem", "class/infiniband_mad");
  });
  tree.add_later("class/infiniband_mad", [&tree, name, directory] {
    tree.add_link("class/infiniband_mad/" + name, directory);
  });
  add_device_file(name, make_file);
}

void Mads::add_device_file(const std::string& name, const MakeFile& make_file) {
  parts_.tree.add_later("dev/infiniband", [&tree = parts_.tree, name, make_file] {
    tree.add_file("dev/infiniband/" + name, make_file());
  });
}

void Mads::remove_umad(const PortMads& port) {
  for (const std::string& name : {port.umad(), port.issm()}) {
    parts_.tree.remove("dev/infiniband/" + name);
    parts_.tree.remove("class/infiniband_mad/" + name);
    parts_.tree.remove(classes_of(device_of(port.port)) + "/" + name);
  }
}

void Mads::drop_clients() {
  for (const auto& port : ports_) {
    for (const auto& [name, make_file] : nodes_of(*port)) {
      if (!parts_.tree.made("dev/infiniband/" + name)) continue;
      parts_.tree.remove("dev/infiniband/" + name);
      add_device_file(name, make_file);
    }
  }
}

void Mads::reset() {
  sa_->stop_burst();
  for (const auto& subnet : subnet_mads_) {
    subnet->network.reset();
    subnet->administrator.reset();
  }
  for (const auto& port : ports_) {
    if (!port->port.host().present()) continue;
    port->mads.leave();
    port->mads.arrive();
  }
}

void Mads::clear_counters() {
  for (const auto& port : ports_) port->mads.limiter().clear_counters();
}

void Mads::finish_reset() {
  sa_->forget_burst();
}

}  // namespace rocefs
