// The files by which a fabric shows itself where only an emulator has them: links and the trace.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "core/loop/engine.h"
#include "core/tree/knob.h"
#include "core/tree/tree.h"
#include "rdma/network/fabric.h"

namespace rocefs {

// The knobs of every link; the control thread's view of what each is set to.
using LinkKnobs = std::map<const Link*, std::shared_ptr<KnobSet>>;
LinkKnobs make_link_knobs(Fabric& fabric, Engine& engine);

// Fabric and engine outlive the tree.
// links/<a>-<b>/ and clock/trace_hash below `debug`.
void add_fabric_files(Tree& tree, const std::string& debug, Fabric& fabric, const LinkKnobs& knobs);

}  // namespace rocefs
