// dev: the devices and their ports.
#include "tools/mango-ctl/commands.h"

namespace rocefs {
namespace {

// "ACTIVE" of "4: ACTIVE", a port's state.
std::string word_of(const std::string& state) {
  size_t colon = state.find(": ");
  return colon == state.npos ? state : state.substr(colon + 2);
}

struct Port {
  std::string number, state, physical, rate, netdev, gid;
};

Port read_port(DeviceReader& files, const std::string& number) {
  std::string directory = "ports/" + number + "/";
  return {number,
          word_of(files.text(directory + "state")),
          word_of(files.text(directory + "phys_state")),
          files.text(directory + "rate"),
          files.text(directory + "gid_attrs/ndevs/1"),
          files.text(directory + "gids/1")};
}

struct Found {
  std::string pci, firmware, board, type, guid, description;
  std::vector<Port> ports;
};

Result<Found> look_at(const NicTree& tree, const std::string& name) {
  DeviceReader files(tree, name);
  Found found{tree.end_of_link(device_file(name, "device")),
              files.text("fw_ver"),
              files.text("board_id"),
              files.text("hca_type"),
              files.text("node_guid"),
              files.text("node_desc"),
              {}};
  for (const std::string& port : tree.counted(device_file(name, "ports"))) {
    found.ports.push_back(read_port(files, port));
  }
  if (!files.outcome()) return files.outcome().error();
  return found;
}

Json to_json(const std::string& name, const Found& found) {
  Json ports = Json::array();
  for (const Port& port : found.ports) {
    ports.push_back({{"port", number_or_text(port.number)},
                     {"netdev", port.netdev},
                     {"state", port.state},
                     {"phys_state", port.physical},
                     {"rate", port.rate},
                     {"gid", port.gid}});
  }
  return {{"device", name},
          {"pci", found.pci},
          {"type", found.type},
          {"firmware", found.firmware},
          {"board", found.board},
          {"node_guid", found.guid},
          {"description", found.description},
          {"ports", ports}};
}

void list_ports(Session& session, const NoOptions&) {
  session.print(fmt::format("{:<12}{:<14}{:<6}{:<12}{:<10}{}\n", "NAME", "PCI", "PORT", "NETDEV",
                            "STATE", "RATE"));
  if (session.tree().devices().empty()) return;
  session.each_device("all", [&](const std::string& name) -> Result<void> {
    Result<Found> found = look_at(session.tree(), name);
    if (!found) return found.error();
    for (const Port& port : found->ports) {
      session.print(fmt::format("{:<12}{:<14}{:<6}{:<12}{:<10}{}\n", name, found->pci, port.number,
                                port.netdev, port.state, port.rate));
    }
    session.add(to_json(name, *found));
    return {};
  });
}

void show_device(Session& session, const DeviceOptions& options) {
  session.each_device(options.device, [&](const std::string& name) -> Result<void> {
    Result<Found> found = look_at(session.tree(), name);
    if (!found) return found.error();
    session.print(fmt::format(
        "Device: {}\n  PCI: {}\n  Type: {}\n  Firmware: {}\n  Board: {}\n  Node GUID: {}\n"
        "  Description: {}\n",
        name, found->pci, found->type, found->firmware, found->board, found->guid,
        found->description));
    for (const Port& port : found->ports) {
      session.print(fmt::format("  Port {}: {}, {}, {}, {}, GID {}\n", port.number, port.netdev,
                                port.state, port.physical, port.rate, port.gid));
    }
    session.add(to_json(name, *found));
    return {};
  });
}

}  // namespace

std::vector<Command> devices_commands() {
  return {
      Command{.path = "dev",
              .summary = "RDMA devices",
              .examples = {"dev list", "dev show mb_0", "--json dev list"}},
      CommandOf<NoOptions>{.path = "dev list",
                           .summary = "List the devices, a line for each port",
                           .examples = {"dev list", "--json dev list"},
                           .run = list_ports},
      CommandOf<DeviceOptions>{.path = "dev show",
                               .summary = "Show address, firmware, GUID and ports of a device",
                               .examples = {"dev show mb_0"},
                               .arguments = {device_or_all<DeviceOptions>()},
                               .run = show_device},
  };
}

}  // namespace rocefs
