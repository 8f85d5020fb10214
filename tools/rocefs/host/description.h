// Descriptions of the hosts of a mount, from kernel/debug/rocefs/hosts/.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "rdma/host/interface_line.h"

namespace rocefs {

// A host, as its files describe it.
struct HostDescription {
  std::string name;
  std::vector<std::string> devices;
  std::vector<InterfaceLine> interfaces;
  bool running = false;  // or attached
  bool attached = false;
};

// All hosts of the mount, in order of their names. The mount is trusted.
Result<std::vector<HostDescription>> read_hosts(const std::string& mount_point);

// The host of this name. ENOENT, with the names of all, if there is none.
Result<const HostDescription*> find_host(const std::vector<HostDescription>& all,
                                         const std::string& name, const std::string& mount_point);

// Lines of /etc/hosts: all hosts by name, and each interface as NAME-INTERFACE.
std::string host_names(const std::vector<HostDescription>& all);

}  // namespace rocefs
