#include "rdma/tree/npcc_files.h"

#include "core/tree/core_stream.h"
#include "core/tree/counter_files.h"
#include "core/tree/knob.h"
#include "core/tree/knob_file.h"

namespace rocefs {

void add_npcc_files(Tree& tree, const std::string& directory, SwitchNpcc& npcc, Engine& engine) {
  auto add_knobs = [&](std::span<const KnobRow> rows, KnobOwner* owner, const std::string& below) {
    add_knob_files(tree, below, std::make_shared<KnobSet>(rows, engine, owner));
  };
  Npcc& own = npcc.npcc();
  add_knobs(kNpccKnobs, &own, directory + "/npcc");
  add_counter_files(tree, directory + "/npcc", kNpccCounters, own.counters());
  tree.add_file(directory + "/npcc/flows", std::make_shared<CoreStream>(
                                               engine, [&own] { return own.flows_text(); },
                                               "flows seen in watched queues, the latest first"));
  for (size_t port = 0; port < npcc.around().port_count(); ++port) {
    std::string at = fmt::format("{}/ports/{}", directory, port + 1);
    tree.add_later(at, [&tree, at, &engine, &knobs = own.port(port)] {
      add_knob_files(tree, at + "/npcc", std::make_shared<KnobSet>(kNpccPortKnobs, engine, &knobs));
    });
  }
}

}  // namespace rocefs
