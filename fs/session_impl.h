// What the session and its handlers share. Private to fs/.
#pragma once

#include <fuse_lowlevel.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fs/notifier.h"
#include "fs/requests.h"
#include "fs/session.h"

namespace rocefs {

// The kernel's file handles are indices into tables of these, not pointers.
struct OpenSlot {
  std::unique_ptr<OpenFile> file;
  // Of a file that is open for writing, as it was then: the node may be gone by now.
  std::string path;
};

// A directory as it was when it was opened: entries may come and go while it is listed.
struct DirectorySlot {
  struct Entry {
    std::string name;
    Ino ino;
    mode_t type;
  };
  std::vector<Entry> entries;
  bool used = false;
};

template <class Slot>
class SlotTable {
 public:
  uint64_t add(Slot slot) {
    if (free_.empty()) {
      free_.reserve(slots_.size() + 1);  // remove() may not fail
      slots_.push_back(std::move(slot));
      return slots_.size() - 1;
    }
    uint64_t index = free_.back();
    free_.pop_back();
    slots_[index] = std::move(slot);
    return index;
  }
  Slot* find(uint64_t index) { return index < slots_.size() ? &slots_[index] : nullptr; }
  // `index` is in use.
  void remove(uint64_t index) {
    slots_[index] = Slot{};
    free_.push_back(index);
  }

 private:
  std::vector<Slot> slots_;
  std::vector<uint64_t> free_;
};

class Session::Impl {
 public:
  Impl(SessionOptions options, Tree& tree, PollLoop& loop)
      : options_(std::move(options)),
        tree_(tree),
        loop_(loop),
        requests_(std::make_shared<Requests>(loop, options_.refused)) {}
  ~Impl();

  Result<void> create();
  Result<void> mount(const std::string& mount_point);
  void receive();
  void serve_until_idle(int idle);

  static const fuse_lowlevel_ops& operations();
  static Impl& of(fuse_req_t request) { return *static_cast<Impl*>(fuse_req_userdata(request)); }

  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  // How long the kernel may keep what it learnt of a node, in seconds.
  double timeout(const Tree::Node& node) {
    Tree::Node* parent = tree_.find(node.parent);
    return node.changes || (parent && parent->changes) ? 0.0 : 3600.0;
  }
  struct stat stat_of(const Tree::Node& node);

  SessionOptions options_;
  Tree& tree_;
  PollLoop& loop_;
  fuse_session* session_ = nullptr;
  std::string mount_point_;
  std::optional<dev_t> device_;
  std::shared_ptr<Notifier> notifier_;
  std::shared_ptr<Requests> requests_;
  SlotTable<OpenSlot> files_;
  SlotTable<DirectorySlot> directories_;
  fuse_buf buffer_{};
  bool mounted_ = false;
};

}  // namespace rocefs
