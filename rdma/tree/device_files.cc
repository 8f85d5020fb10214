#include "rdma/tree/device_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "core/base/kstrto.h"
#include "core/base/text.h"
#include "core/tree/function_file.h"
#include "core/tree/knob.h"
#include "core/tree/knob_file.h"
#include "core/tree/trigger.h"
#include "rdma/nic/device.h"
#include "rdma/tree/congestion_files.h"
#include "rdma/tree/pci_config.h"

namespace rocefs {
namespace {

std::string guid_text(uint64_t guid) {
  return fmt::format("{:04x}:{:04x}:{:04x}:{:04x}", guid >> 48, guid >> 32 & 0xffff,
                     guid >> 16 & 0xffff, guid & 0xffff);
}

// Cuts what is longer, as the kernel does (node_desc_store() of drivers/infiniband/core/sysfs.c).
class NodeDescriptionFile final : public KnobFile {
 public:
  using KnobFile::KnobFile;
  void store(std::string_view text, const OperationPtr& operation, Answer<void> answer) override {
    const bool longer = without_newline(text).size() > row().max;
    KnobFile::store(longer ? text.substr(0, row().max) : text, operation, std::move(answer));
  }
};

// The machine's CPUs: a function without NUMA node is local to all of them (pci-sysfs.c).
std::string online_cpus() {
  std::ifstream file("/sys/devices/system/cpu/online");
  std::string list;
  std::getline(file, list);
  return list.empty() ? "0" : list;
}

// Converts a list such as 0-3,8 to a mask as the kernel prints it: in groups of 32, from the
// highest.
std::string cpu_mask(std::string_view list) {
  constexpr uint64_t kMaxCpu = 8192;
  std::vector<uint32_t> groups(1);
  for (std::string_view range : split(list, ",")) {
    std::vector<std::string_view> ends = split(range, "-");
    Result<uint64_t> first = kstrtou64(ends.empty() ? "" : ends.front(), 10);
    Result<uint64_t> last = kstrtou64(ends.empty() ? "" : ends.back(), 10);
    for (uint64_t cpu = first ? *first : 1; last && cpu <= std::min(*last, kMaxCpu); ++cpu) {
      if (cpu / 32 >= groups.size()) groups.resize(cpu / 32 + 1);
      groups[cpu / 32] |= uint32_t{1} << cpu % 32;
    }
  }
  std::string mask = fmt::format("{:x}", groups.back());
  for (size_t i = groups.size() - 1; i-- > 0;) mask += fmt::format(",{:08x}", groups[i]);
  return mask;
}

// Six BARs and a ROM, all absent.
std::string no_resources() {
  std::string text;
  for (int i = 0; i < 7; ++i) {
    text += fmt::format("{}0x{:016x} 0x{:016x} 0x{:016x}", i ? "\n" : "", 0, 0, 0);
  }
  return text;
}

std::string modalias() {
  return fmt::format("pci:v{:08X}d{:08X}sv{:08X}sd{:08X}bc{:02x}sc{:02x}i{:02x}", kPciVendor,
                     kPciDevice, kPciVendor, kPciSubsystem, kPciClass >> 16, kPciClass >> 8 & 0xff,
                     kPciClass & 0xff);
}

}  // namespace

DeviceFiles::DeviceFiles(Tree& tree, Device& device, size_t index, Engine& engine,
                         const LinkKnobs& knobs)
    : tree_(tree),
      device_(device),
      engine_(engine),
      knobs_(knobs),
      links_(device.port_count()),
      function_(fmt::format("devices/pci{}/{}", device.spec().pci.substr(0, 7), device.spec().pci)),
      uverbs_(fmt::format("uverbs{}", index)) {
  tree_.add_later(function_, [this] { add_function(); });
  tree_.add_later("bus/pci/devices",
                  [this] { tree_.add_link("bus/pci/devices/" + device_.spec().pci, function_); });
}

const std::shared_ptr<PortLink>& DeviceFiles::link_of(size_t index) {
  std::shared_ptr<PortLink>& link = links_[index];
  Port& port = device_.port(index + 1);
  if (!link) {
    link = PortLink::create(port, knobs_.at(port.egress()), knobs_.at(port.ingress()));
  }
  return link;
}

void DeviceFiles::fixed(const std::string& path, std::string text, std::string_view doc) {
  tree_.add_file(path, constant(std::move(text), doc));
}

void DeviceFiles::add_function() {
  std::string cpus = online_cpus();
  fixed(function_ + "/vendor", fmt::format("0x{:04x}", kPciVendor), "PCI vendor ID");
  fixed(function_ + "/device", fmt::format("0x{:04x}", kPciDevice), "PCI device ID");
  fixed(function_ + "/subsystem_vendor", fmt::format("0x{:04x}", kPciVendor),
        "PCI subsystem vendor ID");
  fixed(function_ + "/subsystem_device", fmt::format("0x{:04x}", kPciSubsystem),
        "PCI subsystem device ID");
  fixed(function_ + "/class", fmt::format("0x{:06x}", kPciClass),
        "PCI class: an Ethernet controller");
  fixed(function_ + "/revision", fmt::format("0x{:02x}", kPciRevision), "PCI revision");
  fixed(function_ + "/irq", "0", "0: no interrupts");
  fixed(function_ + "/resource", no_resources(), "BARs: none");
  for (const char* which : {"/current_link_", "/max_link_"}) {
    fixed(function_ + which + "speed", std::string(kPciSpeedText), "speed of the PCI Express link");
    fixed(function_ + which + "width", fmt::format("{}", kPciWidth),
          "lanes of the PCI Express link");
  }
  tree_.add_file(function_ + "/config", make_pci_config_file(device_.spec()));
  fixed(function_ + "/numa_node", "-1", "-1: local to every node");
  fixed(function_ + "/local_cpulist", cpus, "CPUs local to the function: all");
  fixed(function_ + "/local_cpus", cpu_mask(cpus), "local_cpulist as a mask");
  fixed(function_ + "/modalias", modalias(), "alias by which udev loads a driver");
  tree_.add_file(function_ + "/uevent",
                 read_only([this]() -> Result<std::string> { return uevent(); },
                           "variables of the function for udev"));
  tree_.add_link(function_ + "/subsystem", "bus/pci");
}

std::string DeviceFiles::uevent() const {
  return fmt::format(
      "{}PCI_CLASS={:X}\nPCI_ID={:04X}:{:04X}\nPCI_SUBSYS_ID={:04X}:{:04X}\nPCI_SLOT_NAME={}\n"
      "MODALIAS={}",
      bound_ ? "DRIVER=mango_core\n" : "", kPciClass, kPciVendor, kPciDevice, kPciVendor,
      kPciSubsystem, device_.spec().pci, modalias());
}

std::string DeviceFiles::directory() const {
  return fmt::format("{}/infiniband/{}", function_, device_.name());
}

// Names in class/ and dev/ are added with the directory of the device, before somebody looks at
// either.
void DeviceFiles::bind() {
  bound_ = true;
  const std::string driver(kDriverDirectory);
  tree_.add_later(function_,
                  [this] { tree_.add_link(function_ + "/driver", std::string(kDriverDirectory)); });
  tree_.add_later(driver, [this] {
    tree_.add_link(fmt::format("{}/{}", kDriverDirectory, device_.spec().pci), function_);
  });
  tree_.add_later(directory(), [this] { add_identity(); });
  tree_.add_later("class/infiniband",
                  [this] { tree_.add_link("class/infiniband/" + device_.name(), directory()); });
  add_uverbs();
  for (size_t i = 0; i < links_.size(); ++i) {
    tree_.add_later(fmt::format("{}/ports/{}", directory(), i + 1), [this, i] { add_port(i); });
    const std::string& netdev = device_.port(i + 1).spec().netdev;
    tree_.add_later(fmt::format("{}/net/{}", function_, netdev), [this, i] { add_interface(i); });
    tree_.add_later("class/net", [this, &netdev] {
      tree_.add_link("class/net/" + netdev, fmt::format("{}/net/{}", function_, netdev));
    });
  }
}

void DeviceFiles::add_port(size_t index) {
  Port& port = device_.port(index + 1);
  add_port_files(tree_, fmt::format("{}/ports/{}", directory(), index + 1), port, engine_,
                 link_of(index));
}

void DeviceFiles::add_interface(size_t index) {
  Port& port = device_.port(index + 1);
  std::string net = fmt::format("{}/net/{}", function_, port.spec().netdev);
  add_interface_files(tree_, net, port, link_of(index));
  add_ecn_files(tree_, net, port, engine_);
  tree_.add_link(net + "/device", function_);
  tree_.add_link(net + "/subsystem", "class/net");
}

void DeviceFiles::unbind() {
  bound_ = false;
  tree_.remove("dev/infiniband/" + uverbs_);
  tree_.remove("class/infiniband_verbs/" + uverbs_);
  tree_.remove(function_ + "/infiniband_verbs");
  tree_.remove("class/infiniband/" + device_.name());
  for (const PortSpec& port : device_.spec().ports) tree_.remove("class/net/" + port.netdev);
  tree_.remove(function_ + "/infiniband");
  tree_.remove(function_ + "/net");
  tree_.remove(fmt::format("{}/{}", kDriverDirectory, device_.spec().pci));
  tree_.remove(function_ + "/driver");
}

void DeviceFiles::add_identity() {
  const std::string& name = device_.name();
  const std::string directory = this->directory();
  std::string guid = guid_text(guid_of(device_.spec().ports[0]));
  fixed(directory + "/node_type", "1: CA", "a channel adapter");
  fixed(directory + "/node_guid", guid, "EUI-64 of the MAC of port 1");
  fixed(directory + "/sys_image_guid", guid, "the same as node_guid");
  fixed(directory + "/fw_ver", kFirmwareVersion, "firmware version");
  fixed(directory + "/hw_rev", fmt::format("{:x}", kHardwareRevision), "hardware revision");
  fixed(directory + "/hca_type", "MB100", "model");
  fixed(directory + "/board_id", "MB_0000000001", "board");
  fixed(directory + "/uevent", "NAME=" + name, "variables of the device for udev");
  NodeDescription& description = device_.description();
  std::vector<KnobValue> start{description.initial()};
  add_knob_file(
      tree_, directory,
      std::make_shared<NodeDescriptionFile>(
          std::make_shared<KnobSet>(kNodeDescriptionKnobs, engine_, &description, std::move(start)),
          0));
  add_cfr_files(tree_, directory, device_, engine_);
  add_knob_files(tree_, directory,
                 std::make_shared<KnobSet>(kPacingKnobs, engine_, &device_.pacing()));
  add_knob_files(tree_, directory,
                 std::make_shared<KnobSet>(kSprayKnobs, engine_, &device_.spraying()));
  add_knob_files(tree_, directory,
                 std::make_shared<KnobSet>(kSelectiveKnobs, engine_, &device_.selective()));
  tree_.add_link(directory + "/device", function_);
  tree_.add_link(directory + "/subsystem", "class/infiniband");
}

// libibverbs opens the device, checks that it is the character device of `dev`, and leaves the rest
// to the provider, which uses the socket: any character device that all may open is suitable.
void DeviceFiles::add_uverbs() {
  std::string directory = fmt::format("{}/infiniband_verbs/{}", function_, uverbs_);
  tree_.add_later(directory, [this, directory] {
    fixed(directory + "/ibdev", device_.name(), "its RDMA device");
    fixed(directory + "/dev", "1:3", "the character device behind dev/infiniband: /dev/null");
    fixed(directory + "/abi_version", "1", "version of the provider's interface");
    fixed(directory + "/uevent", fmt::format("MAJOR=1\nMINOR=3\nDEVNAME=infiniband/{}", uverbs_),
          "variables of uverbs for udev");
    tree_.add_link(directory + "/device", function_);
    tree_.add_link(directory + "/subsystem", "class/infiniband_verbs");
  });
  tree_.add_later("class/infiniband_verbs", [this] {
    tree_.add_link("class/infiniband_verbs/" + uverbs_,
                   fmt::format("{}/infiniband_verbs/{}", function_, uverbs_));
  });
  tree_.add_later("dev/infiniband",
                  [this] { tree_.add_link_out("dev/infiniband/" + uverbs_, "/dev/null"); });
}

}  // namespace rocefs
