// proj: the driver is bound to its devices, or unbound.
#include <cerrno>

#include "tools/mango-ctl/commands.h"

namespace rocefs {
namespace {

const std::string kDriver = "bus/pci/drivers/mango_core";

// PCI functions of this driver, bound or not; in /sys those of other drivers stand beside them.
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

// Skips functions that are bound, or unbound, already.
void reload(Session& session, bool enabled) {
  for (const std::string& address : functions(session.tree())) {
    if (session.tree().has(kDriver + "/" + address) == enabled) continue;
    Result<void> done = session.tree().store(kDriver + (enabled ? "/bind" : "/unbind"), address);
    if (!done) {
      session.fail(errorf(done.error().code, "{}: {}", address, done.error().reason));
    }
  }
}

struct ProjectOptions {
  std::string project;
};

void enable_project(Session& session, const ProjectOptions&) {
  reload(session, true);
}
void disable_project(Session& session, const ProjectOptions&) {
  reload(session, false);
}

ArgumentOf<ProjectOptions> project_argument() {
  return {&ProjectOptions::project,
          {.name = "project", .help = "the RDMA driver", .choices = {"rdma"}}};
}

}  // namespace

std::vector<Command> project_commands() {
  return {
      Command{.path = "proj",
              .summary = "Drivers of the cards",
              .examples = {"proj disable rdma", "proj enable rdma"}},
      CommandOf<ProjectOptions>{.path = "proj enable",
                                .summary = "Bind the driver to every device",
                                .manual = "Devices come up in the PCC mode that was set.",
                                .examples = {"proj enable rdma"},
                                .arguments = {project_argument()},
                                .run = enable_project},
      CommandOf<ProjectOptions>{.path = "proj disable",
                                .summary = "Unbind the driver from every device",
                                .manual = "Whatever uses a device ends.",
                                .examples = {"proj disable rdma"},
                                .arguments = {project_argument()},
                                .run = disable_project},
  };
}

}  // namespace rocefs
