// NicTree: the mounted tree for a command line: found, read and written by path, with the reason of
// a refused store.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/assignment.h"
#include "core/base/result.h"

namespace rocefs {

class NicTree {
 public:
  // Tree at `wanted`, else at $ROCEFS_MOUNT, else at $SYSFS_PATH or /sys if one is there, else the
  // only one that is mounted. The error tells what was found instead.
  static Result<NicTree> find(const std::string& wanted);
  // For commands that use no tree: every call fails.
  static NicTree none() { return NicTree("/dev/null"); }

  // Paths are relative to the root of the tree, without a leading slash. Errors are those of the
  // system calls, and name the path where the daemon gave no reason of its own.

  bool has(const std::string& path) const;
  // Whole content of a file.
  Result<std::string> read(const std::string& path) const;
  // Content without the newline at the end.
  Result<std::string> value(const std::string& path) const;
  // Entries of a directory in its own order, without hidden ones.
  Result<std::vector<std::string>> names(const std::string& path) const;
  // Last name of a link's target; empty if there is none.
  std::string end_of_link(const std::string& path) const;
  std::string absolute(const std::string& path) const { return root_ + "/" + path; }

  // Stores by one write(2).
  Result<void> store(const std::string& path, std::string_view text) const;
  // Stores several knobs at once: all or none.
  Result<void> store_together(const std::vector<Assignment>& assignments) const;
  // Writes a question and reads the answer from the same open file, without the newline at the end.
  Result<std::string> ask(const std::string& path, std::string_view question) const;

  // Names in natural order, mb_2 before mb_10: devices, or entries of a directory.
  std::vector<std::string> devices() const { return counted("class/infiniband"); }
  std::vector<std::string> counted(const std::string& path) const;
  std::vector<std::string> management_interfaces() const;

 private:
  explicit NicTree(std::string root) : root_(std::move(root)) {}

  std::string why_refused(const std::string& path, int code) const;

  std::string root_;  // without links
};

}  // namespace rocefs
