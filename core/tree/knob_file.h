// Files of knobs: one for each row of a set, and look-up of a knob by path. Control thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/assignment.h"
#include "core/tree/access.h"
#include "core/tree/file.h"
#include "core/tree/knob.h"
#include "core/tree/knob_transaction.h"
#include "core/tree/tree.h"

namespace rocefs {

// File of a knob.
class KnobFile : public Attribute {
 public:
  KnobFile(std::shared_ptr<KnobSet> set, size_t index) : set_(std::move(set)), index_(index) {}
  const std::shared_ptr<KnobSet>& set() const { return set_; }
  size_t index() const { return index_; }
  const KnobRow& row() const { return set_->rows()[index_]; }
  bool readable() const override { return true; }
  bool writable() const override { return true; }
  bool saved() const override { return true; }
  Result<std::string> show() override;
  FileDoc doc() const override;
  void store(std::string_view text, const OperationPtr& operation, Answer<void> answer) override {
    store(text, operation, true, std::move(answer));
  }

 protected:
  void store(std::string_view text, const OperationPtr& operation, bool merges,
             Answer<void> answer);

 private:
  std::shared_ptr<KnobSet> set_;
  size_t index_;
};

// Adds one file per row of `set` below `directory`.
void add_knob_files(Tree& tree, const std::string& directory, const std::shared_ptr<KnobSet>& set);
// Adds the file of one row, for a knob with a file class of its own.
void add_knob_file(Tree& tree, const std::string& directory, const std::shared_ptr<KnobFile>& file);

// Looks the paths up, following links, and parses the values by their rows. A path may be a pattern
// (core/tree/file_walk.h). EINVAL for a path that is not a knob's or names a knob twice, under any
// name; the reason names it. E2BIG for patterns that stand for more than WalkBudget allows. With
// `writer`: EACCES for a knob that it may not write.
Result<std::vector<KnobChange>> knob_changes(Tree& tree, const std::vector<Assignment>& assignments,
                                             const std::optional<TreeUser>& writer = {});

// The knob at a path; null if there is none.
std::shared_ptr<KnobFile> find_knob(Tree& tree, std::string_view path);

}  // namespace rocefs
