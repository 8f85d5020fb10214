// NicTree: the mounted tree as a command line sees it: found, read and written by paths, and why a
// store was refused.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/assignment.h"
#include "core/base/result.h"

namespace rocefs {

class NicTree {
 public:
  // The tree at `wanted`; where that is empty at $ROCEFS_MOUNT, at $SYSFS_PATH or in /sys if there
  // is one, or the only one that is mounted. The error says what is there instead.
  static Result<NicTree> find(const std::string& wanted);

  // Paths are relative to the root of the tree, without a leading slash. Errors are those of the
  // system calls, and name the path where the daemon gave no reason of its own.

  bool has(const std::string& path) const;
  // All of a file.
  Result<std::string> read(const std::string& path) const;
  // Without the newline at its end.
  Result<std::string> value(const std::string& path) const;
  // Of a directory, in its own order; without hidden ones.
  Result<std::vector<std::string>> names(const std::string& path) const;
  // The last name of what a link leads to; empty if it leads nowhere.
  std::string end_of_link(const std::string& path) const;
  std::string absolute(const std::string& path) const { return root_ + "/" + path; }

  // One store.
  Result<void> store(const std::string& path, std::string_view text) const;
  // Several knobs in one store: all or none.
  Result<void> store_together(const std::vector<Assignment>& assignments) const;
  // Writes a question and reads what the same open file answers, without the newline at its end.
  Result<std::string> ask(const std::string& path, std::string_view question) const;

  // Of the devices, and of other entries of a directory, in the order in which people count.
  std::vector<std::string> devices() const { return counted("class/infiniband"); }
  std::vector<std::string> counted(const std::string& path) const;
  std::vector<std::string> management_interfaces() const;

 private:
  explicit NicTree(std::string root) : root_(std::move(root)) {}

  std::string why_refused(const std::string& path, int code) const;

  std::string root_;  // without links
};

}  // namespace rocefs
