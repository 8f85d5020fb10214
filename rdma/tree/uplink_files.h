// Files of uplinks: uplinks/<name>/….
#pragma once

#include <string>

#include "core/tree/tree.h"
#include "rdma/network/fabric.h"

namespace rocefs {

// Below `debug`. The fabric outlives the tree.
void add_uplink_files(Tree& tree, const std::string& debug, Fabric& fabric, Engine& engine);

}  // namespace rocefs
