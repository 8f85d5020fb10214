#include "core/tree/reset.h"
#include "core/tree/knob_file.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <set>

#include "core/tree/counter_files.h"
#include "core/tree/knob_transaction.h"
#include "core/tree/trigger.h"

namespace rocefs {
namespace {

constexpr TriggerRow kReset{
    "reset", "1",
    "restores the configuration: values of knobs, including [knobs] of the ini file, and drivers "
    "of devices; ends flows, loads, captures and scheduled stores; verbs programs lose their "
    "device "
    "(EIO), PCC ends and forgets plugins, packets in flight are dropped; counters, statistics, "
    "trace_hash and random numbers start again. Time goes on"};

// Knobs whose files are made, in the order of their paths: how they are applied does not depend on
// who looked first.
std::vector<KnobChange> changes_to_defaults(Tree& tree) {
  std::vector<KnobChange> changes;
  tree.each_made_file([&](const std::string& path, const std::shared_ptr<File>& file) {
    auto knob = std::dynamic_pointer_cast<KnobFile>(file);
    if (!knob) return;
    changes.push_back({knob->set(), knob->index(), knob->set()->defaults()[knob->index()], path});
  });
  std::sort(changes.begin(), changes.end(),
            [](const KnobChange& a, const KnobChange& b) { return a.path < b.path; });
  return changes;
}

using KnobSets = std::set<const KnobSet*>;

// Knobs of the other sets of the parts. Core thread.
std::vector<KnobChange> further_changes(const ResetParts& parts, KnobSets seen) {
  std::vector<KnobChange> changes;
  auto add = [&](const std::shared_ptr<KnobSet>& set) {
    if (!seen.insert(set.get()).second) return;
    for (size_t i = 0; i < set->rows().size(); ++i) {
      changes.push_back({set, i, set->defaults()[i], {}});
    }
  };
  for (const auto& visit_all : parts.knobs) visit_all(add);
  return changes;
}

class Reset : public std::enable_shared_from_this<Reset> {
 public:
  Reset(Tree& tree, Engine& engine, ResetParts parts)
      : tree_(tree), engine_(engine), parts_(std::move(parts)) {}

  void store(std::string_view text, const OperationPtr& operation, Answer<void> answer) {
    if (without_newline(text) != "1") return answer(Error{EINVAL, "only 1 resets"});
    if (running_) return answer(Error{EBUSY, "another reset is in progress"});
    running_ = true;
    prepare(0, operation,
            [self = shared_from_this(), answer = std::move(answer)](Result<void> result) mutable {
              self->running_ = false;
              answer(std::move(result));
            });
  }

 private:
  void prepare(size_t part, const OperationPtr& operation, Answer<void> answer) {
    if (part == parts_.before.size()) return act(std::move(answer));
    parts_.before[part](*operation, [self = shared_from_this(), part, operation,
                                     answer = std::move(answer)](Result<void> result) mutable {
      if (!result) return answer(std::move(result));
      self->prepare(part + 1, operation, std::move(answer));
    });
  }

  // Knobs that a reset restores: those in the tree, and the others that the parts know.
  struct Knobs {
    KnobSets sets;
    KnobTransaction in_tree, others;
  };

  void act(Answer<void> answer) {
    std::vector<KnobChange> changes = changes_to_defaults(tree_);
    KnobSets sets;
    for (const KnobChange& change : changes) sets.insert(change.set.get());
    auto knobs = std::make_shared<Knobs>(
        Knobs{std::move(sets), KnobTransaction(std::move(changes)), KnobTransaction({})});
    engine_.call<void>(
        [self = shared_from_this(), knobs]() -> Result<void> {
          knobs->others = KnobTransaction(further_changes(self->parts_, knobs->sets));
          for (KnobTransaction* all : {&knobs->in_tree, &knobs->others}) {
            if (Result<void> checked = all->check(); !checked) return checked;
          }
          for (auto& part : self->parts_.on_core) part();
          knobs->in_tree.apply();
          knobs->others.apply();
          for (auto& part : self->parts_.counters) part();
          self->engine_.clear_statistics();
          return {};
        },
        [self = shared_from_this(), knobs,
         answer = std::move(answer)](Result<void> result) mutable {
          if (!result) return answer(std::move(result));
          knobs->in_tree.publish();
          knobs->others.publish();
          self->tree_.each_made_file([](const std::string&, const std::shared_ptr<File>& file) {
            if (auto counter = std::dynamic_pointer_cast<CounterFile>(file)) counter->cleared();
          });
          for (auto& part : self->parts_.after) part();
          self->tree_.when_known([answer = std::move(answer)]() mutable { answer({}); });
        });
  }

  Tree& tree_;
  Engine& engine_;
  ResetParts parts_;
  bool running_ = false;
};

}  // namespace

void add_reset_file(Tree& tree, const std::string& directory, Engine& engine, ResetParts parts) {
  auto reset = std::make_shared<Reset>(tree, engine, std::move(parts));
  add_trigger(tree, directory, kReset, engine,
              [reset](std::string_view text, const OperationPtr& operation, Answer<void> answer) {
                reset->store(text, operation, std::move(answer));
              });
}

}  // namespace rocefs
