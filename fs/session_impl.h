// What the session and its handlers share. Private to fs/.
#pragma once

#include <fuse_lowlevel.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/shares.h"
#include "fs/channel.h"
#include "fs/notifier.h"
#include "fs/requests.h"
#include "fs/saved_session.h"
#include "fs/session.h"
#include "fs/socket_binder.h"

namespace rocefs {

// The kernel's file handles are indices into tables of these, not pointers.
struct OpenSlot {
  std::unique_ptr<OpenFile> file;
  // Of a file that is open for writing, as it was then: the node may be gone by now.
  std::string path;
  Shares::Share share = nullptr;
  bool used() const { return file != nullptr; }
};

struct DirectoryEntry {
  std::string name;
  Ino ino;
  mode_t type;
  bool operator==(const DirectoryEntry&) const = default;
};
using Listing = std::vector<DirectoryEntry>;  // `.` and `..` at least

// A directory as it was when it was opened: entries may come and go while it is listed. Who finds
// it as the one before did shares that one's listing, so many handles take no memory for each.
struct DirectorySlot {
  std::shared_ptr<const Listing> listing;
  Shares::Share share = nullptr;
  bool used() const { return listing != nullptr; }
};

// Each is also kept in the journal: a change there is staged, and the answer that tells the kernel
// commits it.
template <class Slot>
class SlotTable {
 public:
  SlotTable(Journal& journal, SavedHandles& saved) : journal_(journal), saved_(saved) {}

  // For one more handle of the user's. Null: it has its share.
  Shares::Share share(uid_t user) { return shares_.take(user, is_privileged(user)); }
  // `slot` has a share.
  uint64_t open(Slot slot, Ino ino, const Caller& caller) {
    uint64_t index = add(std::move(slot));
    if (index >= saved_.limit) journal_.stage(saved_.limit, index + 1);
    journal_.stage(saved_.slots[index], SavedHandle{ino, caller.uid, caller.gid, caller.pid, 0});
    return index;
  }
  void release(uint64_t index) {
    if (!find(index) || !slots_[index].used()) return;
    journal_.stage(saved_.slots[index].ino, Ino{0});
    remove(index);
  }
  // Opens again what the dead worker had open; `open_again(saved)` returns the slot.
  template <class OpenAgain>
  size_t restore(OpenAgain open_again) {
    slots_.resize(saved_.limit);
    for (uint64_t index = slots_.size(); index-- > 0;) {
      const SavedHandle& saved = saved_.slots[index];
      if (saved.ino != 0) {
        slots_[index] = open_again(saved);
        slots_[index].share = shares_.take(saved.uid, true);  // it was granted before
      } else {
        free_.push_back(index);
      }
    }
    return slots_.size() - free_.size();
  }
  Slot* find(uint64_t index) { return index < slots_.size() ? &slots_[index] : nullptr; }
  SavedHandle& saved(uint64_t index) { return saved_.slots[index]; }
  void clear() { slots_.clear(); }

 private:
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
  void remove(uint64_t index) {
    slots_[index] = Slot{};
    free_.push_back(index);
  }

  static constexpr size_t kForPrivileged = SavedHandles::kMax / 16;

  Journal& journal_;
  SavedHandles& saved_;
  Shares shares_{SavedHandles::kMax, kForPrivileged};
  std::vector<Slot> slots_;
  std::vector<uint64_t> free_;
};

class Session::Impl {
 public:
  Impl(SessionOptions options, Tree& tree, PollLoop& loop);
  ~Impl();

  Result<void> create();
  Result<void> mount(const std::string& mount_point);
  Result<TakenOver> take_over(const std::string& mount_point, int descriptor);
  Result<void> serve(const std::string& mount_point, int descriptor);
  OpenSlot reopen(const SavedHandle& saved);
  std::shared_ptr<const Listing> list(const Tree::Node& directory);
  void release_directory(Ino ino, uint64_t handle);
  void note_attributes(Ino ino);
  void receive();
  void serve_until_told();
  void end_mount();

  static const fuse_lowlevel_ops& operations();
  static Impl& of(fuse_req_t request) { return *static_cast<Impl*>(fuse_req_userdata(request)); }

  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  // How long the kernel may keep what it learnt of a node, in seconds.
  double timeout(const Tree::Node& node) {
    Tree::Node* parent = tree_.find(node.parent);
    return node.changes || (parent && parent->changes) ? 0.0 : 3600.0;
  }
  // The same of its attributes. lseek(2) asks for those of a file without an end each time, and
  // hears that it has none.
  double attribute_timeout(const Tree::Node& node) {
    return node.file && !node.file->has_end() ? 0.0 : timeout(node);
  }
  struct stat stat_of(const Tree::Node& node);

  SessionOptions options_;
  Tree& tree_;
  PollLoop& loop_;
  fuse_session* session_ = nullptr;
  std::string mount_point_;
  std::optional<dev_t> device_;
  std::unique_ptr<SocketBinder> binder_;
  std::shared_ptr<Notifier> notifier_;
  std::shared_ptr<Requests> requests_;
  std::unique_ptr<Journal> own_journal_;  // of a session that nobody can take over
  Journal& journal_;
  SavedSession& saved_;
  Channel channel_;
  SlotTable<OpenSlot> files_;
  SlotTable<DirectorySlot> directories_;
  std::map<Ino, std::weak_ptr<const Listing>> listings_;  // the newest of each that is open
  bool mounted_ = false;
  bool taken_over_ = false;
};

}  // namespace rocefs
