// Files of a switch's NPCC.
#pragma once

#include <string>

#include "core/loop/engine.h"
#include "core/tree/tree.h"
#include "rdma/fabric/switch_npcc.h"

namespace rocefs {

// Control thread, before the engine starts. npcc/ and ports/<n>/npcc/ below the switch's
// `directory`. `npcc` and `engine` outlive the tree.
void add_npcc_files(Tree& tree, const std::string& directory, SwitchNpcc& npcc, Engine& engine);

}  // namespace rocefs
