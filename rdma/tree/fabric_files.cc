#include "core/tree/counter_files.h"
#include "core/tree/function_file.h"
#include "core/tree/knob.h"
#include "core/tree/knob_file.h"
#include "core/tree/knob_transaction.h"
#include "rdma/fabric/link.h"
#include "rdma/tree/files.h"
#include "rdma/tree/switch_files.h"

namespace rocefs {

LinkKnobs::Shared::Shared(Fabric& of, Engine& on)
    : fabric(of), engine(on), made(of.links().size()) {}

LinkKnobs::Shared::~Shared() {
  for (const auto& one : made) delete one.load();
}

LinkKnobs::LinkKnobs(Fabric& fabric, Engine& engine)
    : shared_(std::make_shared<Shared>(fabric, engine)) {}

std::shared_ptr<KnobSet> LinkKnobs::at(const Link& link) const {
  std::atomic<const Made*>& place = shared_->made[link.id()];
  if (const Made* known = place.load(std::memory_order_acquire)) return *known;
  const Fabric& fabric = shared_->fabric;
  auto fresh = std::make_unique<const Made>(
      std::make_shared<KnobSet>(kLinkKnobs, shared_->engine, fabric.links()[link.id()],
                                Link::values_of(fabric.initial_parameters(link))));
  const Made* known = nullptr;
  if (place.compare_exchange_strong(known, fresh.get(), std::memory_order_acq_rel)) {
    known = fresh.release();
  }
  return *known;
}

void LinkKnobs::each_made(const std::function<void(const std::shared_ptr<KnobSet>&)>& visit) const {
  for (const auto& place : shared_->made) {
    if (const Made* made = place.load(std::memory_order_acquire)) visit(*made);
  }
}

void store_link_state(Engine& engine, const LinkKnobs& knobs, const Link& link, bool up) {
  auto change = std::make_shared<KnobTransaction>(
      std::vector<KnobChange>{{knobs.at(link), knob_index(kLinkKnobs, "state"), uint64_t{up}, {}}});
  if (!change->check()) return;
  change->apply();
  engine.tell_control([change] { change->publish(); });
}

void add_fabric_files(Tree& tree, const std::string& debug, Fabric& fabric, const LinkKnobs& knobs,
                      Engine& engine) {
  tree.add_later(debug + "/links", [&tree, debug, &fabric, knobs] {
    for (Link* link : fabric.links()) {
      std::string directory = fmt::format("{}/links/{}", debug, link->name());
      tree.add_later(directory, [&tree, directory, link, knobs] {
        add_knob_files(tree, directory, knobs.at(*link));
        add_counter_files(tree, directory, kLinkCounters, link->counters());
        add_counter_files(tree, directory, kLinkLosses, link->losses());
        tree.add_later(directory + "/pfc", [&tree, directory, link] {
          for (size_t priority = 0; priority < kPriorities; ++priority) {
            add_pause_files(tree, fmt::format("{}/pfc/{}", directory, priority),
                            link->pause_state(priority));
          }
        });
      });
    }
  });
  Reconvergence& routing = fabric.reconvergence();
  add_knob_files(
      tree, debug + "/routes",
      std::make_shared<KnobSet>(kReconvergenceKnobs, engine, &routing, routing.values()));
  add_counter_files(tree, debug + "/routes", kReconvergenceCounters, routing.counters());
  add_counter_files(tree, debug, kFabricCounters, fabric.counters());
  tree.add_file(debug + "/clock/trace_hash",
                read_only(
                    [&fabric]() -> Result<std::string> {
                      return fmt::format("{:016x}", fabric.trace_hash());
                    },
                    "hash over time, link, headers and length of every packet that links carried"));
}

}  // namespace rocefs
