// FileWalk: the files that patterns of paths stand for, one after the other, so that a walk of a
// large tree can be spread over many calls. Control thread.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/tree/tree.h"

namespace rocefs {

// Whether a component of `path` has a * or ?.
bool is_pattern(std::string_view path);

// * and ? in a component stand for what they stand for in a shell. Follows links. Files come
// pattern by pattern, those of a pattern in the order of the tree; a file that two patterns stand
// for comes twice. The tree may change between two calls of next().
class FileWalk {
 public:
  struct Found {
    std::string path;  // as the pattern leads there
    std::shared_ptr<File> file;
  };

  // Finds only what `reader` may read, as the modes of files and directories say; null: all files.
  // Supplementary groups count as none. The tree outlives the walk.
  FileWalk(Tree& tree, std::vector<std::string> patterns, std::optional<Caller> reader = {});

  // The next file; null if there is none, or after a look at `budget` entries, which it counts
  // down.
  std::optional<Found> next(size_t& budget);
  // Whether the last file was found.
  bool ended() const { return frames_.empty() && pattern_ == patterns_.size(); }
  // Whether the next walk finds the same if the tree's version is the same: no directory on the way
  // is refreshed when it is looked at.
  bool repeats() const { return repeats_; }
  void restart();

 private:
  // A directory on the way, and what is left of its entries.
  struct Frame {
    std::string path;
    size_t component;  // which the entries must match
    std::vector<Ino> entries;
    size_t at = 0;
  };

  void enter(const Tree::Node& directory, std::string path, size_t component);
  bool may(const Tree::Node& node, mode_t access) const;
  bool may_reach(const Tree::Node& node) const;

  Tree& tree_;
  const std::vector<std::string> patterns_;
  const std::optional<Caller> reader_;
  size_t pattern_ = 0;                   // the next one
  std::vector<std::string> components_;  // of the present one
  std::vector<Frame> frames_;
  bool repeats_ = true;
};

// Paths of the files that `pattern` stands for, found at once. A path without * and ? is the only
// one, whether or not there is such a file.
std::vector<std::string> matching_files(Tree& tree, std::string_view pattern);

}  // namespace rocefs
