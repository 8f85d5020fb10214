// Memory regions: registered memory with keys and rights, and the asynchronous interface to the
// bytes behind them.
//
// The responder asks for a payload to be placed and acknowledges when told that it is; the
// requester asks for bytes and sends when told that they are there. Memory of the daemon answers at
// once, memory of clients later.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace rocefs {

// Is told that an operation on memory is over. Called on the core's thread, never from within the
// call that asked.
class MemoryListener {
 public:
  virtual ~MemoryListener() = default;
  virtual void memory_done(uint64_t ticket, bool ok) = 0;
};

struct AtomicOperation {
  bool compare_swap = false;  // or fetch and add
  uint64_t swap_add = 0;
  uint64_t compare = 0;

  uint64_t result(uint64_t original) const {
    if (!compare_swap) return original + swap_add;
    return original == compare ? swap_add : original;
  }
};

// The bytes behind one or more regions. Offsets count from the first byte; callers stay in bounds.
class Memory {
 public:
  enum class Outcome { kDone, kPending, kFailed };

  virtual ~Memory() = default;
  // The bytes themselves where the core's thread may touch them; null: ask with write() and read().
  virtual uint8_t* direct() { return nullptr; }
  // What is placed goes nowhere, what is read is zero: nobody touches a byte.
  virtual bool blank() const { return false; }
  // Until told, `source` and `into` stay as they are, and the caller's.
  virtual Outcome write(uint64_t offset, std::span<const uint8_t> source, MemoryListener& listener,
                        uint64_t ticket) = 0;
  virtual Outcome read(uint64_t offset, std::span<uint8_t> into, MemoryListener& listener,
                       uint64_t ticket) = 0;
  // Puts the eight bytes that are there into `original` and what `operation` makes of them in their
  // place; no other atomic comes in between. Numbers are in the host's order. `original` lives
  // until told.
  virtual Outcome atomic(uint64_t offset, const AtomicOperation& operation, uint64_t& original,
                         MemoryListener& listener, uint64_t ticket) = 0;
};

// Bytes that the core's thread may touch: they answer at once.
class DirectMemory : public Memory {
 public:
  uint8_t* direct() final { return bytes_.data(); }
  bool blank() const final { return blank_; }
  std::span<uint8_t> bytes() const { return bytes_; }
  Outcome write(uint64_t offset, std::span<const uint8_t> source, MemoryListener& listener,
                uint64_t ticket) final;
  Outcome read(uint64_t offset, std::span<uint8_t> into, MemoryListener& listener,
               uint64_t ticket) final;
  Outcome atomic(uint64_t offset, const AtomicOperation& operation, uint64_t& original,
                 MemoryListener& listener, uint64_t ticket) override;

 protected:
  // `bytes` stay where they are for as long as it lives; of a blank() one they may be read only.
  explicit DirectMemory(std::span<uint8_t> bytes, bool blank = false)
      : bytes_(bytes), blank_(blank) {}

 private:
  const std::span<uint8_t> bytes_;
  const bool blank_;
};

// Memory of the daemon: zeroed pages.
class LocalMemory final : public DirectMemory {
 public:
  // Null when there is not that much.
  static std::shared_ptr<LocalMemory> create(uint64_t size);
  // The same, but blank(): for traffic that is counted and not looked at.
  static std::shared_ptr<LocalMemory> create_blank(uint64_t size);
  ~LocalMemory() override;

 private:
  using DirectMemory::DirectMemory;
  static std::shared_ptr<LocalMemory> map(uint64_t size, bool blank);
};

// Local read is always allowed.
enum Access : uint8_t {
  kLocalWrite = 1 << 0,
  kRemoteWrite = 1 << 1,
  kRemoteRead = 1 << 2,
  kRemoteAtomic = 1 << 3,
  kWindowBind = 1 << 4,  // windows may be bound to the region
};
inline constexpr uint8_t kRemoteAny = kRemoteWrite | kRemoteRead | kRemoteAtomic;

// A window of type 2B belongs to the queue pair that has bound it, and must be invalidated before
// it is bound again; one of type 1 is there for all of its protection domain.
enum class WindowType : uint8_t { kType1, kType2 };

// A region, or a window bound to a part of one.
struct MemoryRegion {
  std::shared_ptr<Memory> memory;  // null: the slot is free, or its window is not bound
  uint8_t* direct = nullptr;       // memory->direct()
  bool blank = false;              // memory->blank()
  uint64_t address = 0;  // the virtual address of its first byte, as WRs and RETHs name it
  uint64_t length = 0;
  uint64_t base = 0;  // the offset of its first byte in `memory`
  uint32_t pd = 0;
  uint8_t access = 0;
  bool window = false;
  uint32_t generation = 0;
  WindowType window_type = WindowType::kType2;
  uint32_t qpn = 0;      // of a window of type 2
  uint32_t parent = 0;   // of a bound window: the region's index
  uint32_t windows = 0;  // bound to this region

  bool covers(uint64_t va, uint64_t size) const {
    return va >= address && size <= length && va - address <= length - size;
  }
  bool open_to(uint32_t number) const {  // of a window: to requests of that queue pair
    return window_type == WindowType::kType1 || qpn == number;
  }
  uint64_t offset_of(uint64_t va) const { return base + (va - address); }
};

// The regions and windows of one device. A key is the slot's index, and in its low byte the
// generation's.
class MemoryTable {
 public:
  MemoryTable() { regions_.emplace_back(); }  // index 0 is never used, so that no key is 0

  // EINVAL for remote write or atomic rights without local write, or past the end of the address
  // space, ENOMEM when all slots are taken.
  Result<uint32_t> add(std::shared_ptr<Memory> memory, uint64_t address, uint64_t length,
                       uint32_t pd, uint8_t access);
  // ENOMEM when all slots are taken. Nobody may use a window before it is bound.
  Result<uint32_t> add_window(uint32_t pd, WindowType type = WindowType::kType2);
  // Of a region or window. EINVAL when there is no such key, EBUSY when windows are bound to the
  // region. References to it are stale from now on.
  Result<void> remove(uint32_t key);

  // What a bind request asks for: the window's slot with a low byte of the binder's choice.
  struct Binding {
    uint32_t key = 0;
    uint32_t region_key = 0;
    uint64_t address = 0;
    uint64_t length = 0;
    uint8_t access = 0;
  };
  // False when region, rights or bounds do not fit, or a window of type 2 is bound already. One of
  // type 1 is bound anew, or to nothing by a length of 0.
  bool bind(const Binding& binding, uint32_t pd, uint32_t qpn);
  // Unbinds a window of type 2; false when `key` is none that this queue pair has bound.
  bool invalidate(uint32_t key, uint32_t qpn);

  // Unbinds what a queue pair that is going has bound: its number will be another's.
  void forget_windows(uint32_t qpn);

  // Null unless `key` is valid now. Valid until the table changes.
  const MemoryRegion* find(uint32_t key) const;
  // The same, but only if `pd` and `qpn` may use these bytes in the ways of `access`. Windows are
  // there for the far end alone.
  const MemoryRegion* allow(uint32_t key, uint32_t pd, uint32_t qpn, uint8_t access, uint64_t va,
                            uint64_t length) const {
    const MemoryRegion* region = find(key);
    bool allowed = region && region->pd == pd && (region->access & access) == access &&
                   region->covers(va, length) &&
                   (!region->window || (region->open_to(qpn) && (access & kRemoteAny)));
    return allowed ? region : nullptr;
  }
  const MemoryRegion* at(uint32_t index, uint32_t generation) const {
    if (index >= regions_.size()) return nullptr;
    const MemoryRegion& region = regions_[index];
    return region.memory && region.generation == generation ? &region : nullptr;
  }
  static uint32_t index_of(uint32_t key) { return key >> 8; }

 private:
  static constexpr uint32_t kMaxRegions = 1u << 24;

  Result<uint32_t> take_slot();
  MemoryRegion* window_of(uint32_t key);
  void unbind(MemoryRegion& window);

  std::vector<MemoryRegion> regions_;
  std::vector<bool> taken_;
  std::vector<uint32_t> free_;
  size_t bound_windows_ = 0;
};

}  // namespace rocefs
