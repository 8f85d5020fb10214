// TreeKeeper: keeps in the journal what people changed in the tree (settings, modes, owners,
// dates), so that a worker that takes over shows the same. On the control thread.
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

// What is kept of one node, found by its path.
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
  // One transaction never stages more than this.
  static constexpr size_t kMaxTransaction = kMaxNodes * (sizeof(SavedNode) + 256);
  timespec born;  // when the tree was mounted: the date of what nobody touched
  uint64_t count;
  SavedNode nodes[kMaxNodes];
};

class TreeKeeper {
 public:
  TreeKeeper(Journal& journal, SavedTree& saved, Tree& tree, PollLoop& loop);
  ~TreeKeeper();
  TreeKeeper(const TreeKeeper&) = delete;
  TreeKeeper& operator=(const TreeKeeper&) = delete;

  // Before the engine starts: stores are answered at once. Brings the tree to what the dead worker
  // left, each setting by a store, and returns what could not be stored, and why.
  std::vector<std::string> restore();
  // Settings that change are kept from now on: with the next commit, or when the loop runs again.
  void watch();

  // A store was accepted, the mode, owner or date of a node was changed. Nothing is kept of nodes
  // that hold no setting, and nothing of more than kMaxNodes.
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
  uint64_t count_ = 0;                        // as it will be after the commit
  std::set<std::string> texts_, attributes_;  // changed, and not yet committed
  bool flushing_ = false;
};

}  // namespace rocefs
