#include "core/tree/knob_file.h"

#include <cerrno>
#include <set>
#include <utility>

#include "core/tree/file_walk.h"

namespace rocefs {

Result<std::string> KnobFile::show() {
  return format_knob(row(), set_->value(index_)) + "\n";
}

FileDoc KnobFile::doc() const {
  return {"knob", knob_values(row()), std::string(row().initial), row().doc};
}

void KnobFile::store(std::string_view text, const OperationPtr& operation, bool merges,
                     Answer<void> answer) {
  Result<KnobValue> value = parse_knob(row(), text);
  if (!value) return answer(value.error());
  std::string stored = format_knob(row(), *value);
  store_knobs(set_->engine(), {{set_, index_, std::move(*value), {}, merges}},
              [operation, stored, answer = std::move(answer)](Result<Moment> applied) mutable {
                if (!applied) return answer(applied.error());
                operation->accepted(stored, *applied);
                answer({});
              });
}

void add_knob_files(Tree& tree, const std::string& directory, const std::shared_ptr<KnobSet>& set) {
  for (size_t i = 0; i < set->rows().size(); ++i) {
    add_knob_file(tree, directory, std::make_shared<KnobFile>(set, i));
  }
}

void add_knob_file(Tree& tree, const std::string& directory,
                   const std::shared_ptr<KnobFile>& file) {
  file->set()->set_file(file->index(), file);
  tree.add_file(fmt::format("{}/{}", directory, file->row().path), file);
}

std::shared_ptr<KnobFile> find_knob(Tree& tree, std::string_view path) {
  Tree::Node* node = tree.follow(path);
  return node ? std::dynamic_pointer_cast<KnobFile>(node->file) : nullptr;
}

namespace {

// Changes of one assignment, each of whose knobs is not in `seen` yet.
using SeenKnobs = std::set<std::pair<const KnobSet*, size_t>>;
Result<void> add_changes(Tree& tree, const Assignment& one, const std::optional<TreeUser>& writer,
                         WalkBudget& budget, SeenKnobs& seen, std::vector<KnobChange>& changes) {
  const Result<std::vector<std::string>> paths = matching_files(tree, one.path, budget);
  if (!paths) return paths.error();
  if (paths->empty()) return errorf(EINVAL, "{}: no knob has such a path", one.path);
  for (const std::string& path : *paths) {
    std::shared_ptr<KnobFile> file = find_knob(tree, path);
    if (!file) return errorf(EINVAL, "{}: no knob has this path", path);
    if (writer && !may_write(tree, *writer, *tree.follow(path))) {
      return errorf(EACCES, "{}: user {} may not write it", path, writer->uid);
    }
    Result<KnobValue> value = parse_knob(file->row(), one.value);
    if (!value) return errorf(value.error().code, "{}: {}", path, value.error().reason);
    if (!seen.emplace(file->set().get(), file->index()).second) {
      return errorf(EINVAL, "{}: given twice", path);
    }
    changes.push_back({file->set(), file->index(), std::move(*value), path, true});
  }
  return {};
}

}  // namespace

Result<std::vector<KnobChange>> knob_changes(Tree& tree, const std::vector<Assignment>& assignments,
                                             const std::optional<TreeUser>& writer) {
  std::vector<KnobChange> changes;
  SeenKnobs seen;
  WalkBudget budget = writer && !writer->all ? WalkBudget::of_others() : WalkBudget();
  for (const Assignment& one : assignments) {
    if (Result<void> added = add_changes(tree, one, writer, budget, seen, changes); !added) {
      return added.error();
    }
  }
  return changes;
}

}  // namespace rocefs
