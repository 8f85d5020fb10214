#include "core/tree/knob_file.h"

#include <algorithm>
#include <cerrno>

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

Result<std::vector<KnobChange>> knob_changes(Tree& tree,
                                             const std::vector<Assignment>& assignments) {
  std::vector<KnobChange> changes;
  for (const Assignment& one : assignments) {
    std::shared_ptr<KnobFile> file = find_knob(tree, one.path);
    if (!file) return errorf(EINVAL, "{}: no knob has this path", one.path);
    Result<KnobValue> value = parse_knob(file->row(), one.value);
    if (!value) return errorf(value.error().code, "{}: {}", one.path, value.error().reason);
    bool twice = std::any_of(changes.begin(), changes.end(), [&](const KnobChange& change) {
      return change.set == file->set() && change.index == file->index();
    });
    if (twice) return errorf(EINVAL, "{}: given twice", one.path);
    changes.push_back({file->set(), file->index(), std::move(*value), one.path, true});
  }
  return changes;
}

}  // namespace rocefs
