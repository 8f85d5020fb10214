// Files that only an emulator has: links and the trace.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/loop/engine.h"
#include "core/tree/knob.h"
#include "core/tree/tree.h"
#include "rdma/network/fabric.h"

namespace rocefs {

// Knobs of every link, as the control thread sees them. Those of a link are made when they are
// first wanted: until then its parameters are its initial ones, because only knobs change them.
// Copies share them. Fabric and engine outlive them.
class LinkKnobs {
 public:
  LinkKnobs(Fabric& fabric, Engine& engine);
  // Any thread, and none waits for another: when two make the knobs of a link at once, both get the
  // first ones.
  std::shared_ptr<KnobSet> at(const Link& link) const;
  // Visits those that are made, in the order of links. Any thread.
  void each_made(const std::function<void(const std::shared_ptr<KnobSet>&)>& visit) const;

 private:
  using Made = std::shared_ptr<KnobSet>;
  struct Shared {
    Shared(Fabric& fabric, Engine& engine);
    ~Shared();
    Fabric& fabric;
    Engine& engine;
    std::vector<std::atomic<const Made*>> made;  // by link; owned
  };
  std::shared_ptr<Shared> shared_;
};

// Takes a link up or down on the core thread, and its knob with it, as a store would.
void store_link_state(Engine& engine, const LinkKnobs& knobs, const Link& link, bool up);

// links/<a>-<b>/, routes/ and clock/trace_hash below `debug`. Fabric and engine outlive the tree.
void add_fabric_files(Tree& tree, const std::string& debug, Fabric& fabric, const LinkKnobs& knobs,
                      Engine& engine);

}  // namespace rocefs
