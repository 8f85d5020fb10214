#include "rdma/tree/switch_files.h"

#include <cerrno>

#include "core/tree/counter_files.h"
#include "core/tree/function_file.h"
#include "core/tree/knob.h"
#include "core/tree/knob_file.h"
#include "core/tree/trigger.h"
#include "rdma/fabric/switch.h"
#include "rdma/tree/npcc_files.h"

namespace rocefs {
namespace {

constexpr TriggerRow kQueuePeak{"peak", "0",
                                "maximum of octets queued; 0 resets it to the present value"};
constexpr TriggerRow kIngressPeak{"peak", "0",
                                  "maximum of octets stored; 0 resets it to the present value"};
constexpr TriggerRow kBufferPeak{"buffer/peak", "0",
                                 "maximum of octets stored; 0 resets it to the present value"};

// A gauge of the core. `counter` outlives the file.
void add_reading(Tree& tree, const std::string& path, const Counter& counter,
                 std::string_view doc) {
  tree.add_file(
      path,
      read_only([&counter]() -> Result<std::string> { return fmt::format("{}", counter.get()); },
                doc));
}

// Maximum of `now`, which the core keeps in `peak`.
void add_peak(Tree& tree, const std::string& directory, const TriggerRow& row, Engine& engine,
              Counter& peak, const Counter& now) {
  add_trigger(
      tree, directory, row, engine,
      [&engine, &peak, &now](std::string_view text, const OperationPtr&, Answer<void> answer) {
        if (without_newline(text) != "0") return answer(Error{EINVAL, "only 0 clears a peak"});
        engine.call<void>(
            [&peak, &now]() -> Result<void> {
              peak.set(now.get());
              return {};
            },
            std::move(answer));
      },
      [&peak]() -> Result<std::string> { return fmt::format("{}", peak.get()); });
}

}  // namespace

void add_pause_files(Tree& tree, const std::string& directory, PauseState& state) {
  add_counter_files(tree, directory, kPauseCounters, state.counters);
  add_reading(tree, directory + "/paused", state.paused,
              "1: the far end of the cable has paused this priority");
}

namespace {

void add_port(Tree& tree, const std::string& directory, Switch& hub, size_t index, Fabric& fabric,
              Engine& engine) {
  SwitchPort& port = hub.port(index);
  for (size_t priority = 0; priority < kPriorities; ++priority) {
    std::string here = fmt::format("{}/queue/{}", directory, priority);
    EgressQueue& queue = hub.queue(index, priority);
    add_reading(tree, here + "/bytes", queue.bytes, "octets queued for this port now");
    add_reading(tree, here + "/packets", queue.packets, "packets queued for this port now");
    add_peak(tree, here, kQueuePeak, engine, queue.peak, queue.bytes);
    add_counter_files(tree, here, kEgressCounters, port.rest->egress_counters[priority]);
    here = fmt::format("{}/pfc/{}", directory, priority);
    add_counter_files(tree, here, kIngressCounters, port.rest->ingress_counters[priority]);
    add_pause_files(tree, here, port.egress.link->pause_state(priority));
  }
  add_counter_files(tree, directory, kCableCounters, port.rest->cable_counters);
  add_reading(tree, directory + "/ingress/bytes", port.ingress.bytes,
              "octets received through this port that the switch stores now");
  add_peak(tree, directory + "/ingress", kIngressPeak, engine, port.ingress.peak,
           port.ingress.bytes);
  tree.add_file(directory + "/link", constant(fabric.far_end(*port.egress.link),
                                              "the far end of the cable: a switch, or a device's "
                                              "port"));
}

void add_switch(Tree& tree, const std::string& directory, Switch& one, Fabric& fabric,
                Engine& engine) {
  add_knob_files(tree, directory,
                 std::make_shared<KnobSet>(kSwitchKnobs, engine, &one,
                                           SwitchSettings::initial_values(one.settings().buffer)));
  add_reading(tree, directory + "/buffer/used", one.used(), "octets that the switch stores now");
  add_counter_files(tree, directory, kRoomCounters, one.drops());
  add_peak(tree, directory, kBufferPeak, engine, one.peak(), one.used());
  for (size_t i = 0; i < one.port_count(); ++i) {
    std::string port = fmt::format("{}/ports/{}", directory, i + 1);
    tree.add_later(port, [&tree, port, &one, i, &fabric, &engine] {
      add_port(tree, port, one, i, fabric, engine);
    });
  }
  add_npcc_files(tree, directory, *fabric.npcc()[one.number()], engine);
}

}  // namespace

void add_switch_files(Tree& tree, const std::string& debug, Fabric& fabric, Engine& engine) {
  tree.add_later(debug + "/fabric", [&tree, debug, &fabric, &engine] {
    for (const auto& one : fabric.switches()) {
      std::string directory = fmt::format("{}/fabric/{}", debug, one->name());
      tree.add_later(directory, [&tree, directory, &hub = *one, &fabric, &engine] {
        add_switch(tree, directory, hub, fabric, engine);
      });
    }
  });
}

}  // namespace rocefs
