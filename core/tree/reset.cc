#include "core/tree/reset.h"
#include "core/tree/knob_file.h"

#include <algorithm>
#include <cerrno>
#include <memory>

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

// All knobs: a fault or a subnet manager may have changed one that nobody has looked for.
std::vector<KnobChange> changes_to_defaults(Tree& tree) {
  std::vector<KnobChange> changes;
  tree.each_file([&](const std::string& path, const std::shared_ptr<File>& file) {
    auto knob = std::dynamic_pointer_cast<KnobFile>(file);
    if (!knob) return;
    changes.push_back({knob->set(), knob->index(), knob->set()->defaults()[knob->index()], path});
  });
  return changes;
}

std::vector<std::shared_ptr<CounterFile>> counters_of(Tree& tree) {
  std::vector<std::shared_ptr<CounterFile>> counters;
  tree.each_file([&](const std::string&, const std::shared_ptr<File>& file) {
    if (auto counter = std::dynamic_pointer_cast<CounterFile>(file)) counters.push_back(counter);
  });
  return counters;
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

  void act(Answer<void> answer) {
    auto knobs = std::make_shared<KnobTransaction>(changes_to_defaults(tree_));
    auto counters = counters_of(tree_);
    engine_.call<void>(
        [self = shared_from_this(), knobs, counters]() -> Result<void> {
          if (Result<void> checked = knobs->check(); !checked) return checked;
          for (auto& part : self->parts_.on_core) part();
          knobs->apply();
          for (const auto& file : counters) file->counter().set(0);
          self->engine_.clear_statistics();
          return {};
        },
        [self = shared_from_this(), knobs, counters,
         answer = std::move(answer)](Result<void> result) mutable {
          if (!result) return answer(std::move(result));
          knobs->publish();
          for (const auto& file : counters) file->cleared();
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
