// Files of switches: fabric/<switch>/{ecn,pfc,npcc,buffer}/… and fabric/<switch>/ports/<n>/….
#pragma once

#include <string>

#include "core/loop/engine.h"
#include "core/tree/tree.h"
#include "rdma/fabric/link.h"
#include "rdma/network/fabric.h"

namespace rocefs {

// Below `debug`. Fabric and engine outlive the tree.
void add_switch_files(Tree& tree, const std::string& debug, Fabric& fabric, Engine& engine);
// Files of a priority that PFC pauses at the port which transmits on a link, in `directory`.
void add_pause_files(Tree& tree, const std::string& directory, PauseState& state);

}  // namespace rocefs
