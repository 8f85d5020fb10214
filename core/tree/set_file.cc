#include "core/tree/set_file.h"
#include "core/tree/knob_file.h"

#include <cerrno>

#include "core/tree/knob_transaction.h"
#include "core/tree/trigger.h"

namespace rocefs {
namespace {

constexpr TriggerRow kSet{
    .path = "set",
    .syntax = "PATH=VALUE [PATH=VALUE …]",
    .doc =
        "stores several knobs together or not at all: packets see all or none, and rules that "
        "span knobs apply to the result; * and ? in a PATH stand for several. All users may "
        "store what they may write: EACCES for another knob",
    .for_all = true};

void store_set(Tree& tree, Engine& engine, std::string_view text, const OperationPtr& operation,
               Answer<void> answer) {
  // A text clipped to a page could end within a value.
  if (text.size() >= File::kPageSize) {
    return answer(errorf(EINVAL, "longer than {} bytes", File::kPageSize - 1));
  }
  Result<std::vector<Assignment>> assignments = parse_assignments(text);
  if (!assignments) return answer(assignments.error());
  store_together(tree, engine, *assignments, writer_of(operation), std::move(answer));
}

}  // namespace

void store_together(Tree& tree, Engine& engine, const std::vector<Assignment>& assignments,
                    const std::optional<TreeUser>& writer, Answer<void> answer) {
  Result<std::vector<KnobChange>> changes = knob_changes(tree, assignments, writer);
  if (!changes) return answer(changes.error());
  store_knobs(engine, std::move(*changes),
              [answer = std::move(answer)](Result<Moment> applied) mutable {
                if (!applied) return answer(applied.error());
                answer({});
              });
}

void add_set_file(Tree& tree, const std::string& directory, Engine& engine) {
  add_trigger(tree, directory, kSet, engine,
              [&](std::string_view text, const OperationPtr& operation, Answer<void> answer) {
                store_set(tree, engine, text, operation, std::move(answer));
              });
}

}  // namespace rocefs
