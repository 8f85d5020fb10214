// The files of congestion control: ecn/ of an interface, cfr/ and tc/ of a device.
#pragma once

#include <string>

#include "core/loop/engine.h"
#include "core/tree/tree.h"

namespace rocefs {

class Device;
class Port;

// ecn/{roce_np,roce_rp}/ below the interface's directory. All arguments outlive the tree.
void add_ecn_files(Tree& tree, const std::string& directory, Port& port, Engine& engine);
// cfr/ and tc/<port>/ below the device's.
void add_cfr_files(Tree& tree, const std::string& directory, Device& device, Engine& engine);

}  // namespace rocefs
