// SlotTable: the file and directory handles that the kernel holds. Private to fs/.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/shares.h"
#include "core/takeover/journal.h"
#include "core/tree/file.h"
#include "core/tree/tree.h"
#include "fs/saved_session.h"

namespace rocefs {

// File slot. The kernel's file handles are indices into tables of these, not pointers.
struct OpenSlot {
  std::unique_ptr<OpenFile> file;
  // Path of a file open for writing, at the time of its open: the node may be gone now.
  std::string path;
  std::shared_ptr<const Opener> opener;
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

// Directory slot: a snapshot from the time of its open, while entries come and go. Equal snapshots
// in sequence share a listing, so that many handles take little memory.
struct DirectorySlot {
  std::shared_ptr<const Listing> listing;
  Shares::Share share = nullptr;
  bool used() const { return listing != nullptr; }
};

// Table of slots, also kept in the journal: changes are staged, and the answer that tells the
// kernel commits them.
template <class Slot>
class SlotTable {
 public:
  SlotTable(Journal& journal, SavedHandles& saved) : journal_(journal), saved_(saved) {}

  // Takes a share for one more handle of the user; null beyond the user's share.
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
        slots_[index].share = shares_.take(saved.uid, true);  // granted before the takeover
      } else {
        free_.push_back(index);
      }
    }
    return slots_.size() - free_.size();
  }
  bool is_open(Ino ino) const {
    for (size_t index = 0; index < slots_.size(); ++index) {
      if (saved_.slots[index].ino == ino && slots_[index].used()) return true;
    }
    return false;
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

}  // namespace rocefs
