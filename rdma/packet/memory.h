// Memory regions: registered memory with keys and rights, and the asynchronous interface to its
// bytes.
//
// The responder has a payload placed, and acknowledges when that is done; the requester has bytes
// read, and sends when they are there. Memory of the daemon answers at once, memory of clients
// later.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/result.h"

namespace rocefs {

// MemoryListener: receives the completion of an asynchronous operation. Core thread, never from
// within the call that began it.
class MemoryListener {
 public:
  virtual ~MemoryListener() = default;
  virtual void memory_done(uint64_t ticket, bool ok) = 0;
};

struct AtomicOperation {
  enum class Kind : uint8_t { kFetchAdd, kCompareSwap, kWrite };

  Kind kind = Kind::kFetchAdd;
  uint64_t swap_add = 0;
  uint64_t compare = 0;

  uint64_t result(uint64_t original) const {
    switch (kind) {
      case Kind::kFetchAdd:
        return original + swap_add;
      case Kind::kCompareSwap:
        return original == compare ? swap_add : original;
      case Kind::kWrite:
        return swap_add;
    }
    return original;
  }
};

// Memory: the bytes behind one or more regions. Offsets count from the first byte; callers stay in
// bounds.
class Memory {
 public:
  enum class Outcome { kDone, kPending, kFailed };

  virtual ~Memory() = default;
  // First byte, where the core thread may access all directly; null: write() and read() must be
  // used.
  virtual uint8_t* direct() { return nullptr; }
  // True for memory that discards writes and reads as zero: no byte is touched.
  virtual bool blank() const { return false; }
  // True for memory of the daemon, whose bytes do not change between the transmission of a packet
  // and its arrival: other packet cores may read them, even if the region is removed meanwhile.
  virtual bool lends() const { return false; }
  // Address of the first byte in the program whose memory it is; of no use for other memory.
  virtual uint64_t program_address() const { return 0; }
  // Asynchronous access. Until completion `source` and `into` are unchanged and owned by the
  // caller.
  virtual Outcome write(uint64_t offset, std::span<const uint8_t> source, MemoryListener& listener,
                        uint64_t ticket) = 0;
  virtual Outcome read(uint64_t offset, std::span<uint8_t> into, MemoryListener& listener,
                       uint64_t ticket) = 0;
  // Puts the eight bytes at `offset` into `original`, and the result of `operation` in their place,
  // without another atomic in between. Numbers are in host order. `original` lives until
  // completion.
  virtual Outcome atomic(uint64_t offset, const AtomicOperation& operation, uint64_t& original,
                         MemoryListener& listener, uint64_t ticket) = 0;

  // Keeps memory that lends until take_back() was called as often. `self` owns it; its regions are
  // of one device.
  void lend(const std::shared_ptr<Memory>& self) {
    if (lent_++ == 0) self_ = self;
  }
  void take_back() {
    if (--lent_ == 0) std::shared_ptr<Memory>(std::move(self_));
  }

 private:
  uint64_t lent_ = 0;
  std::shared_ptr<Memory> self_;  // while lent
};

// DirectMemory: bytes that the core thread may access: operations are done at once.
class DirectMemory : public Memory {
 public:
  uint8_t* direct() final { return bytes_.data(); }
  bool blank() const final { return blank_; }
  std::span<uint8_t> bytes() const { return bytes_; }
  Outcome write(uint64_t offset, std::span<const uint8_t> source, MemoryListener& listener,
                uint64_t ticket) override;
  Outcome read(uint64_t offset, std::span<uint8_t> into, MemoryListener& listener,
               uint64_t ticket) final;
  Outcome atomic(uint64_t offset, const AtomicOperation& operation, uint64_t& original,
                 MemoryListener& listener, uint64_t ticket) override;

 protected:
  // `bytes` stay in place for the object's life; those of a blank() memory are only read.
  explicit DirectMemory(std::span<uint8_t> bytes, bool blank = false)
      : bytes_(bytes), blank_(blank) {}

 private:
  const std::span<uint8_t> bytes_;
  const bool blank_;
};

// LocalMemory: zeroed pages of the daemon.
class LocalMemory final : public DirectMemory {
 public:
  // Null if there is not enough memory.
  static std::shared_ptr<LocalMemory> create(uint64_t size);
  // Blank memory, for traffic whose bytes are not looked at: at most kMaxBlank bytes.
  static constexpr uint64_t kMaxBlank = uint64_t{1} << 31;
  static std::shared_ptr<LocalMemory> create_blank(uint64_t size);
  ~LocalMemory() override;
  bool lends() const override { return true; }

 private:
  using DirectMemory::DirectMemory;
};

// Access rights. Local read is always allowed.
enum Access : uint8_t {
  kLocalWrite = 1 << 0,
  kRemoteWrite = 1 << 1,
  kRemoteRead = 1 << 2,
  kRemoteAtomic = 1 << 3,
  kWindowBind = 1 << 4,  // windows may be bound to the region
  kZeroBased = 1 << 5,   // no right: requests name the bytes by their offset
};
inline constexpr uint8_t kRemoteAny = kRemoteWrite | kRemoteRead | kRemoteAtomic;

// Window types. A type 2B window belongs to the queue pair that has bound it, and must be
// invalidated before it is bound again; a type 1 window serves all of its protection domain.
enum class WindowType : uint8_t { kType1, kType2 };

// MemoryRegion: a region, or a window bound to a part of one. What a packet reads is in the first
// cache line.
struct alignas(64) MemoryRegion {
  std::shared_ptr<Memory> memory;  // null: a free slot, or an unbound window
  uint8_t* direct = nullptr;       // memory->direct()
  uint64_t address = 0;            // virtual address of the first byte, as WRs and RETHs name it
  uint64_t length = 0;
  uint64_t base = 0;  // offset of the first byte in `memory`
  uint32_t pd = 0;
  uint32_t generation = 0;
  uint32_t qpn = 0;  // type 2 window: its queue pair
  uint8_t access = 0;
  bool blank = false;  // memory->blank()
  bool window = false;
  WindowType window_type = WindowType::kType2;

  bool renamed = false;  // `address` is not memory->program_address()
  uint32_t parent = 0;   // bound window: index of its region
  uint32_t windows = 0;  // number of windows bound to this region

  bool covers(uint64_t va, uint64_t size) const {
    return va >= address && size <= length && va - address <= length - size;
  }
  bool open_to(uint32_t number) const {  // window: true for requests of that queue pair
    return window_type == WindowType::kType1 || qpn == number;
  }
  uint64_t offset_of(uint64_t va) const { return base + (va - address); }
};

// MemoryTable: regions and windows of one device. A key is the index of the slot, with the low byte
// of its generation.
class MemoryTable {
 public:
  MemoryTable() { regions_.emplace_back(); }  // index 0 is not used: no key is 0

  // EINVAL for remote write or atomic rights without local write, or for a region past the end of
  // the address space; ENOMEM when all slots are taken. `address` does not count in a zero based
  // region. `base`: offset of the first byte in `memory`.
  Result<uint32_t> add(std::shared_ptr<Memory> memory, uint64_t address, uint64_t length,
                       uint32_t pd, uint8_t access, uint64_t base = 0);
  // ENOMEM when all slots are taken. The window is useless until it is bound.
  Result<uint32_t> add_window(uint32_t pd, WindowType type = WindowType::kType2);
  // Changes domain and rights of a region, which keeps its key. EINVAL as for add(), for an unknown
  // key, or for another base of its addresses.
  Result<void> change(uint32_t key, uint32_t pd, uint8_t access);
  // Removes a region or window. EINVAL for an unknown key, EBUSY while windows are bound to the
  // region. References to it become stale.
  Result<void> remove(uint32_t key);

  // Parameters of a bind request: `key` is the window's, with a low byte chosen by the binder.
  struct Binding {
    uint32_t key = 0;
    uint32_t region_key = 0;
    uint64_t address = 0;
    uint64_t length = 0;
    uint8_t access = 0;
  };
  // False if region, rights or bounds do not fit, or if a type 2 window is already bound. A type 1
  // window is bound anew, or unbound by a length of 0; it cannot be zero based. A type 2 window
  // cannot have a length of 0 (IBTA o10-37.2.40).
  bool bind(const Binding& binding, uint32_t pd, uint32_t qpn);
  // Unbinds a type 2 window; false unless this queue pair has bound it.
  bool invalidate(uint32_t key, uint32_t qpn);

  // Unbinds all windows of a queue pair that is destroyed: its number will be reused.
  void forget_windows(uint32_t qpn);

  // Null unless `key` is valid. The pointer is valid until the table changes.
  const MemoryRegion* find(uint32_t key) const {
    uint32_t index = index_of(key);
    if (index >= regions_.size()) return nullptr;
    const MemoryRegion& region = regions_[index];
    return region.memory && (region.generation & 0xff) == (key & 0xff) ? &region : nullptr;
  }
  // As find(), but null unless `pd` and `qpn` may use these bytes with the rights of `access`.
  // Windows serve remote access alone.
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
  // Asks the CPU for what at() will read.
  void prefetch(uint32_t index) const {
    if (index < regions_.size()) __builtin_prefetch(&regions_[index]);
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
