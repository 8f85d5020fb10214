#include "tools/rocefs/host/description.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace rocefs {
namespace {

Result<std::vector<std::string>> lines_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) return errorf(errno, "{}: {}", path.string(), std::strerror(errno));
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

}  // namespace

Result<std::vector<HostDescription>> read_hosts(const std::string& mount_point) {
  std::filesystem::path directory = mount_point + "/kernel/debug/rocefs/hosts";
  std::error_code failed;
  std::vector<HostDescription> hosts;
  for (const auto& entry : std::filesystem::directory_iterator(directory, failed)) {
    HostDescription& host = hosts.emplace_back();
    host.name = entry.path().filename();
    Result<std::vector<std::string>> devices = lines_of(entry.path() / "devices");
    if (!devices) return devices.error();
    host.devices = *devices;
    Result<std::vector<std::string>> interfaces = lines_of(entry.path() / "interfaces");
    if (!interfaces) return interfaces.error();
    Result<std::vector<std::string>> state = lines_of(entry.path() / "state");
    if (!state) return state.error();
    host.running = !state->empty() && state->front() != "off";
    host.attached = !state->empty() && state->front() == "attached";
    for (const std::string& text : *interfaces) {
      Result<InterfaceLine> line = parse_interface(text);
      if (!line)
        return errorf(EINVAL, "{}: {}", (entry.path() / "interfaces").string(),
                      line.error().reason);
      host.interfaces.push_back(*line);
    }
  }
  if (failed) return errorf(failed.value(), "{}: {}", directory.string(), failed.message());
  std::sort(hosts.begin(), hosts.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return hosts;
}

Result<const HostDescription*> find_host(const std::vector<HostDescription>& all,
                                         const std::string& name, const std::string& mount_point) {
  std::string names;
  for (const HostDescription& host : all) {
    if (host.name == name) return &host;
    names += " " + host.name;
  }
  return errorf(ENOENT, "there is no host {} in {}; hosts:{}", name, mount_point, names);
}

std::string host_names(const std::vector<HostDescription>& all) {
  std::string text;
  for (const HostDescription& host : all) {
    for (const InterfaceLine& interface : host.interfaces) {
      bool first = &interface == &host.interfaces.front();
      for (const InterfaceAddress& address : interface.addresses) {
        text += fmt::format("{}{} {}-{}\n", address.text, first ? " " + host.name : "", host.name,
                            interface.name);
      }
    }
  }
  return text;
}

}  // namespace rocefs
