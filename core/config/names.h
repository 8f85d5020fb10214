// Names that a configuration gives: to devices, switches, uplinks, hosts and interfaces.
#pragma once

#include <string_view>

#include "core/base/result.h"

namespace rocefs {

// Names become directories and words of command lines, and links are named A-B: no leading `.` or
// `-`.
bool valid_node_name(std::string_view name);
// The same for a device, which cannot have the word for all devices.
bool valid_device_name(std::string_view name);
// The ini file's netdev=. EINVAL for a name that an interface cannot have, for those that Linux has
// for others, and for those of the management interfaces, which are listed with the ports' in
// class/net.
Result<void> check_netdev(std::string_view name);

}  // namespace rocefs
