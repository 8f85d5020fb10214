// proj: the driver leaves its devices, or takes them.
#include <cerrno>

#include "tools/mango-ctl/commands.h"

namespace rocefs {
namespace {

const std::string kDriver = "bus/pci/drivers/mango_core";

// Every PCI function that is this driver's, bound or not. Others' stand beside them in /sys.
std::vector<std::string> functions(const NicTree& tree) {
  std::vector<std::string> ours;
  for (const std::string& address : tree.counted("bus/pci/devices")) {
    std::string path = "bus/pci/devices/" + address;
    Result<std::string> vendor = tree.value(path + "/vendor");
    Result<std::string> device = tree.value(path + "/device");
    if (vendor && device && *vendor == "0x1fc9" && *device == "0x4d42") ours.push_back(address);
  }
  return ours;
}

// Those for which it is done already are left alone.
void reload(Session& session, bool enabled) {
  for (const std::string& address : functions(session.tree())) {
    if (session.tree().has(kDriver + "/" + address) == enabled) continue;
    Result<void> done = session.tree().store(kDriver + (enabled ? "/bind" : "/unbind"), address);
    if (!done) {
      session.fail(errorf(done.error().code, "{}: {}", address, done.error().reason));
    }
  }
}

}  // namespace

void add_project_commands(CommandLine& line) {
  CLI::App& project = line.group(line.root(), "proj", "the drivers of the cards",
                                 "proj disable rdma\nproj enable rdma");
  for (bool enabled : {true, false}) {
    const char* word = enabled ? "enable" : "disable";
    auto name = line.options<std::string>();
    CLI::App& command = line.command(
        project, word,
        enabled ? "the driver takes every device, in the PCC mode that was set"
                : "the driver leaves every device: what uses one ends",
        std::string("proj ") + word + " rdma", [=](Session& session) { reload(session, enabled); });
    command.add_option("project", *name, "rdma")
        ->required()
        ->type_name("")
        ->check(CLI::IsMember({"rdma"}));
  }
}

}  // namespace rocefs
