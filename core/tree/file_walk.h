// FileWalk: the files that patterns of paths stand for, one after the other, so that a walk of a
// large tree can be spread over many calls. Control thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/tree/access.h"
#include "core/tree/tree.h"

namespace rocefs {

// Whether a component of `path` has a * or ?.
bool is_pattern(std::string_view path);
// Whether `name` matches a component: * stands for any text, ? for one octet.
bool matches(std::string_view component, std::string_view name);

// * and ? in a component stand for what they stand for in a shell. Follows links, three on a way.
// Files come pattern by pattern, those of a pattern in the order of the tree; a file that two
// patterns stand for comes twice. The tree may change between two calls of next().
class FileWalk {
 public:
  // Longest pattern: more components, or longer ones, than any file of a tree has.
  static constexpr size_t kMaxComponents = 24, kMaxComponent = 255;
  // Entries that a walk may look at.
  static constexpr uint64_t kMaxEntries = uint64_t{1} << 22;

  struct Found {
    std::string path;  // as the pattern leads there
    std::shared_ptr<File> file;
  };

  // ENAMETOOLONG for a pattern that no walk takes.
  static Result<void> check(std::string_view pattern);
  // Finds only what `reader` may read; null: all files. The tree outlives the walk.
  FileWalk(Tree& tree, std::vector<std::string> patterns, std::optional<TreeUser> reader = {});

  // The next file; null if there is none, or after a look at `budget` entries, which it counts
  // down.
  std::optional<Found> next(size_t& budget);
  // Whether the last file was found.
  bool ended() const { return frames_.empty() && pattern_ == patterns_.size(); }
  // Whether it has looked at kMaxEntries.
  bool too_long() const { return looked_ > kMaxEntries; }
  // Whether the next walk finds the same if the tree's version is the same: no directory on the way
  // is refreshed when it is looked at.
  bool repeats() const { return repeats_; }
  void restart();

 private:
  // A directory on the way, and what is left of its entries.
  struct Frame {
    std::string path;
    size_t component;  // which the entries must match
    int links;         // followed so far
    std::vector<Ino> entries;
    size_t at = 0;
  };

  void enter(const Tree::Node& directory, std::string path, size_t component, int links);
  bool may(const Tree::Node& node, mode_t access) const {
    return !reader_ || rocefs::may(*reader_, node, access);
  }
  bool may_reach(const Tree::Node& node) const {
    return !reader_ || rocefs::may_reach(tree_, *reader_, node);
  }

  Tree& tree_;
  const std::vector<std::string> patterns_;
  const std::optional<TreeUser> reader_;
  size_t pattern_ = 0;                   // the next one
  std::vector<std::string> components_;  // of the present one
  std::vector<Frame> frames_;
  uint64_t looked_ = 0;
  bool repeats_ = true;
};

// Limits what the patterns of one store may cost while all else waits for it.
struct WalkBudget {
  size_t entries = size_t{1} << 20;  // left to look at
  size_t files = 65536;              // left to find

  // For a user who may not write all: looking takes the control thread's time from others, 30 ms
  // at most.
  static WalkBudget of_others() { return {size_t{1} << 16, 4096}; }
};

// Paths of the files that `pattern` stands for, found at once; E2BIG beyond the budget, which it
// counts down. A path without * and ? is the only one, whether or not there is such a file.
Result<std::vector<std::string>> matching_files(Tree& tree, std::string_view pattern,
                                                WalkBudget& budget);

}  // namespace rocefs
