// TreeKeeper: keeps changes of the tree (settings, modes, owners, dates) in the journal, so that a
// worker that takes over shows the same. Control thread.
#pragma once

#include <sys/types.h>
#include <time.h>

#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/loop/poll_loop.h"
#include "core/takeover/journal.h"
#include "core/tree/file.h"
#include "core/tree/tree.h"

namespace rocefs {

// Journalled state of a node, found by its path.
struct SavedNode {
  static constexpr size_t kMaxPath = 480;
  uint32_t has_text, text_size;
  uint32_t has_attributes;
  mode_t mode;
  uid_t uid;
  gid_t gid;
  timespec atime, mtime;
  uint32_t path_size;
  char path[kMaxPath];
  char text[Attribute::kPageSize];
};

struct SavedTree {
  static constexpr size_t kMaxNodes = 4096;
  // Limit of the bytes staged by a transaction.
  static constexpr size_t kMaxTransaction = kMaxNodes * (sizeof(SavedNode) + 256);
  timespec born;  // time of the mount: date of untouched nodes
  uint64_t count;
  SavedNode nodes[kMaxNodes];
};

class TreeKeeper {
 public:
  TreeKeeper(Journal& journal, SavedTree& saved, Tree& tree, PollLoop& loop);
  ~TreeKeeper();
  TreeKeeper(const TreeKeeper&) = delete;
  TreeKeeper& operator=(const TreeKeeper&) = delete;

  // Before the engine starts: stores are answered at once. Restores the dead worker's state, each
  // setting by a store, and returns the stores that failed, with their reasons.
  std::vector<std::string> restore();
  // Keeps changes of settings from now on: with the next commit, or when the loop runs again.
  void watch();

  // Called for an accepted store, or a changed mode, owner or date of a node. Keeps nodes with
  // settings only, at most kMaxNodes.
  void stored(const std::string& path);
  void attributes_changed(const std::string& path);

 private:
  bool restore_text(const SavedNode& saved, std::string& why);
  void stage();
  void stage_text(const std::string& path);
  void stage_attributes(const std::string& path);
  SavedNode* slot(const std::string& path);
  void flush_later();

  Journal& journal_;
  SavedTree& saved_;
  Tree& tree_;
  PollLoop& loop_;
  std::unordered_map<std::string, uint64_t> slots_;
  uint64_t count_ = 0;                        // after the next commit
  std::set<std::string> texts_, attributes_;  // changed since the last commit
  bool flushing_ = false;
};

}  // namespace rocefs
