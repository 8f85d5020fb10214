// Files that only an emulator has: links and the trace.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "core/loop/engine.h"
#include "core/tree/knob.h"
#include "core/tree/tree.h"
#include "rdma/network/fabric.h"

namespace rocefs {

// Knobs of every link, as the control thread sees them.
using LinkKnobs = std::map<const Link*, std::shared_ptr<KnobSet>>;
LinkKnobs make_link_knobs(Fabric& fabric, Engine& engine);

// Takes a link up or down on the core thread, and its knob with it, as a store would.
void store_link_state(Engine& engine, const LinkKnobs& knobs, const Link& link, bool up);

// links/<a>-<b>/ and clock/trace_hash below `debug`. Fabric and engine outlive the tree.
void add_fabric_files(Tree& tree, const std::string& debug, Fabric& fabric, const LinkKnobs& knobs);

}  // namespace rocefs
