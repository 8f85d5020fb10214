#include <fmt/format.h>

#include <array>
#include <memory>

#include "core/counter_files.h"
#include "core/function_file.h"
#include "core/knob.h"
#include "rdma/device.h"
#include "rdma/files.h"

namespace rocefs {
namespace {

using Text = Result<std::string>;

constexpr KnobRow kDeviceKnobs[] = {
    {"node_desc", KnobType::kText, 0, 63, "", "", "", "what the administrator calls this node"},
};

constexpr size_t kGidTableLen = 8;

std::string guid_text(uint64_t guid) {
  return fmt::format("{:04x}:{:04x}:{:04x}:{:04x}", guid >> 48, guid >> 32 & 0xffff,
                     guid >> 16 & 0xffff, guid & 0xffff);
}

std::string gid_text(const Ip& gid) {
  std::string text;
  for (size_t i = 0; i < gid.size(); i += 2) {
    text += fmt::format("{}{:02x}{:02x}", i ? ":" : "", gid[i], gid[i + 1]);
  }
  return text;
}

// The rates that link widths and speeds make (IBTA 7.2, drivers/infiniband/core/sysfs.c).
struct RateName {
  uint64_t mbps;
  std::string_view name;
};
constexpr std::array<RateName, 13> kRates{{{2'500, "1X SDR"},
                                           {5'000, "1X DDR"},
                                           {10'000, "4X SDR"},
                                           {14'000, "1X FDR"},
                                           {20'000, "4X DDR"},
                                           {25'000, "1X EDR"},
                                           {40'000, "4X QDR"},
                                           {50'000, "1X HDR"},
                                           {56'000, "4X FDR"},
                                           {100'000, "4X EDR"},
                                           {200'000, "4X HDR"},
                                           {400'000, "4X NDR"},
                                           {800'000, "4X XDR"}}};

// The true rate, with the name of the slowest link that carries it.
std::string rate_text(uint64_t bps) {
  std::string_view name = kRates.back().name;
  for (size_t i = kRates.size(); i-- > 0;) {
    if (bps <= kRates[i].mbps * 1'000'000) name = kRates[i].name;
  }
  return fmt::format("{:g} Gb/sec ({})", static_cast<double>(bps) / 1e9, name);
}

class DeviceFiles {
 public:
  DeviceFiles(Tree& tree, Device& device, Engine& engine, std::shared_ptr<KnobSet> egress)
      : tree_(tree),
        device_(device),
        engine_(engine),
        egress_(std::move(egress)),
        spec_(device.spec()),
        pci_(fmt::format("devices/pci{}/{}", spec_.pci.substr(0, 7), spec_.pci)),
        ib_(fmt::format("{}/infiniband/{}", pci_, spec_.name)),
        net_(fmt::format("{}/net/{}", pci_, spec_.ports[0].netdev)) {}

  void add() {
    add_pci();
    add_net();
    add_identity();
    add_port(ib_ + "/ports/1");
  }

 private:
  void fixed(const std::string& path, std::string text) {
    tree_.add_file(path, constant(std::move(text)));
  }

  void add_pci() {
    fixed(pci_ + "/vendor", "0x1fc9");
    fixed(pci_ + "/device", "0x4d42");
    fixed(pci_ + "/subsystem_vendor", "0x1fc9");
    fixed(pci_ + "/subsystem_device", "0x0100");
    fixed(pci_ + "/class", "0x020000");
    fixed(pci_ + "/revision", "0x01");
    fixed(pci_ + "/numa_node", "-1");
    fixed(pci_ + "/modalias", "pci:v00001FC9d00004D42sv00001FC9sd00000100bc02sc00i00");
    tree_.add_link(pci_ + "/driver", "bus/pci/drivers/mango_core");
    tree_.add_link("bus/pci/drivers/mango_core/" + spec_.pci, pci_);
    tree_.add_link("bus/pci/devices/" + spec_.pci, pci_);
  }

  void add_net() {
    const auto& mac = spec_.ports[0].mac;
    fixed(net_ + "/address", fmt::format("{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}", mac[0],
                                         mac[1], mac[2], mac[3], mac[4], mac[5]));
    fixed(net_ + "/type", "1");
    fixed(net_ + "/dev_port", "0");
    tree_.add_file(net_ + "/operstate",
                   link_text([](const LinkParameters& link) { return link.up ? "up" : "down"; }));
    tree_.add_file(net_ + "/speed", link_text([](const LinkParameters& link) {
                     return fmt::format("{}", link.rate_bps / 1'000'000);
                   }));
    tree_.add_link(net_ + "/device", pci_);
    tree_.add_link("class/net/" + spec_.ports[0].netdev, net_);
  }

  void add_identity() {
    std::string guid = guid_text(guid_of(spec_.ports[0]));
    fixed(ib_ + "/node_type", "1: CA");
    fixed(ib_ + "/node_guid", guid);
    fixed(ib_ + "/sys_image_guid", guid);
    fixed(ib_ + "/fw_ver", "1.0.0");
    fixed(ib_ + "/hw_rev", "1");
    fixed(ib_ + "/hca_type", "MB100");
    fixed(ib_ + "/board_id", "MB_0000000001");
    std::vector<KnobValue> start{spec_.name + " emulated RoCEv2 HCA"};
    auto knobs = std::make_shared<KnobSet>(kDeviceKnobs, engine_, nullptr, std::move(start));
    knobs->add_files(tree_, ib_);
    tree_.add_link(ib_ + "/device", pci_);
    tree_.add_link(ib_ + "/subsystem", "class/infiniband");
    tree_.add_link("class/infiniband/" + spec_.name, ib_);
  }

  void add_port(const std::string& port) {
    tree_.add_file(port + "/state", link_text([](const LinkParameters& link) {
                     return link.up ? "4: ACTIVE" : "1: DOWN";
                   }));
    tree_.add_file(port + "/phys_state", link_text([](const LinkParameters& link) {
                     return link.up ? "5: LinkUp" : "3: Disabled";
                   }));
    tree_.add_file(port + "/rate",
                   link_text([](const LinkParameters& link) { return rate_text(link.rate_bps); }));
    fixed(port + "/link_layer", "Ethernet");
    fixed(port + "/lid", "0x0");
    fixed(port + "/lid_mask_count", "0");
    fixed(port + "/sm_lid", "0x0");
    fixed(port + "/sm_sl", "0");
    fixed(port + "/cap_mask", "0x04010000");
    fixed(port + "/pkeys/0", "0xffff");
    add_gids(port);
    add_counter_files(tree_, port, kPortCounters, std::as_const(device_).port().counters());
  }

  void add_gids(const std::string& port) {
    std::vector<Ip> gids = gids_of(spec_.ports[0]);
    for (size_t i = 0; i < kGidTableLen; ++i) {
      bool used = i < gids.size();
      fixed(fmt::format("{}/gids/{}", port, i), gid_text(used ? gids[i] : Ip{}));
      std::string types = fmt::format("{}/gid_attrs/types/{}", port, i);
      std::string ndevs = fmt::format("{}/gid_attrs/ndevs/{}", port, i);
      if (used) {
        fixed(types, "RoCE v2");
        fixed(ndevs, spec_.ports[0].netdev);
      } else {
        auto empty = []() -> Text { return Error{EINVAL, "this GID table entry is empty"}; };
        tree_.add_file(types, read_only(empty));
        tree_.add_file(ndevs, read_only(empty));
      }
    }
  }

  // Text made of what the port's link is set to.
  template <class Format>
  std::shared_ptr<Attribute> link_text(Format format) {
    return read_only([knobs = egress_, format]() -> Text {
      return std::string(format(Link::parameters_of(knobs->values())));
    });
  }

  Tree& tree_;
  Device& device_;
  Engine& engine_;
  const std::shared_ptr<KnobSet> egress_;  // of the link that the port transmits on
  const DeviceSpec& spec_;
  const std::string pci_, ib_, net_;
};

}  // namespace

void add_device_files(Tree& tree, Fabric& fabric, Engine& engine, const LinkKnobs& knobs) {
  tree.add_directory("class/infiniband");
  tree.add_directory("class/net");
  for (const auto& device : fabric.devices()) {
    DeviceFiles(tree, *device, engine, knobs.at(&device->port().egress())).add();
  }
}

}  // namespace rocefs
