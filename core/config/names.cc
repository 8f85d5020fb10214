#include "core/config/names.h"

#include <algorithm>
#include <cerrno>

namespace rocefs {

bool valid_node_name(std::string_view name) {
  constexpr size_t kMaxName = 63;
  auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  };
  return !name.empty() && name.size() <= kMaxName && name[0] != '.' && name[0] != '-' &&
         std::all_of(name.begin(), name.end(), allowed);
}

bool valid_device_name(std::string_view name) {
  return valid_node_name(name) && name != "all";
}

Result<void> check_netdev(std::string_view name) {
  constexpr size_t kMaxInterfaceName = 15;  // IFNAMSIZ with its NUL is 16
  constexpr std::string_view kMgmt = "mango_mgmt";
  if (!valid_node_name(name) || name.size() > kMaxInterfaceName) {
    return errorf(EINVAL, "netdev={}: not an interface's name", name);
  }
  // all and default: /proc/sys/net/ipv4/conf (net/ipv4/devinet.c).
  if (name == "lo" || name == "all" || name == "default") {
    return errorf(EINVAL, "netdev={}: a name that Linux uses itself", name);
  }
  if (name.starts_with(kMgmt)) {
    return errorf(EINVAL, "netdev={}: names {}N are the management interfaces'", name, kMgmt);
  }
  return {};
}

}  // namespace rocefs
