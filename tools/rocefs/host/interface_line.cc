#include "tools/rocefs/host/interface_line.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace rocefs {
namespace {

template <class T>
bool read_number(std::string_view text, T& out) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

bool read_mac(const std::string& text, std::array<uint8_t, 6>& mac) {
  unsigned m[6];
  char more;
  if (std::sscanf(text.c_str(), "%2x:%2x:%2x:%2x:%2x:%2x%c", &m[0], &m[1], &m[2], &m[3], &m[4],
                  &m[5], &more) != 6) {
    return false;
  }
  std::copy_n(m, 6, mac.begin());
  return true;
}

bool read_address(std::string_view text, InterfaceAddress& out) {
  size_t slash = text.find('/');
  if (slash == text.npos || !read_number(text.substr(slash + 1), out.prefix)) return false;
  out.text = text.substr(0, slash);
  return out.prefix <= 8 * out.size() &&
         ::inet_pton(out.ipv6 ? AF_INET6 : AF_INET, out.text.c_str(), out.bytes.data()) == 1;
}

bool read_key(InterfaceLine& line, std::string_view key, std::string_view value) {
  if (key == "mac") return read_mac(std::string(value), line.mac);
  if (key == "mtu") return read_number(value, line.mtu);
  if (key == "speed") return read_number(value, line.speed);
  if (key != "ip" && key != "ip6") return true;  // of a later version
  InterfaceAddress& address = line.addresses.emplace_back();
  address.ipv6 = key == "ip6";
  return read_address(value, address);
}

Result<std::vector<std::string>> lines_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) return errorf(errno, "{}: {}", path.string(), std::strerror(errno));
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

}  // namespace

bool InterfaceAddress::covers(const InterfaceAddress& other) const {
  if (ipv6 != other.ipv6) return false;
  for (unsigned bit = 0; bit < prefix; ++bit) {
    if ((bytes[bit / 8] ^ other.bytes[bit / 8]) & 0x80 >> bit % 8) return false;
  }
  return true;
}

Result<InterfaceLine> parse_interface(std::string_view text) {
  std::istringstream words{std::string(text)};
  InterfaceLine line;
  words >> line.name;
  for (std::string word; words >> word;) {
    size_t equals = word.find('=');
    std::string_view all = word;
    bool good =
        equals != word.npos && read_key(line, all.substr(0, equals), all.substr(equals + 1));
    if (!good) return errorf(EINVAL, "{}: not understood", word);
  }
  if (line.name.empty() || line.mtu == 0) return errorf(EINVAL, "'{}' is no interface", text);
  return line;
}

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
