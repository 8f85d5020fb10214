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

#include "core/result.h"
#include "rdma/packet.h"

namespace rocefs {

// Is told that an operation on memory is over. Called on the core's thread, never from within the
// call that asked.
class MemoryListener {
 public:
  virtual ~MemoryListener() = default;
  virtual void memory_done(uint64_t ticket, bool ok) = 0;
};

// The bytes behind one or more regions. Offsets count from the first byte; callers stay in bounds.
class Memory {
 public:
  enum class Outcome { kDone, kPending, kFailed };

  virtual ~Memory() = default;
  // The bytes themselves where the core's thread may touch them; null: ask with write() and read().
  virtual uint8_t* direct() { return nullptr; }
  // Until told, `source` and `into` stay as they are, and the caller's.
  virtual Outcome write(uint64_t offset, std::span<const uint8_t> source, MemoryListener& listener,
                        uint64_t ticket) = 0;
  virtual Outcome read(uint64_t offset, std::span<uint8_t> into, MemoryListener& listener,
                       uint64_t ticket) = 0;
};

// Memory of the daemon. Zeroed pages; answers at once.
class LocalMemory final : public Memory {
 public:
  // Null when there is not that much.
  static std::shared_ptr<LocalMemory> create(uint64_t size);
  ~LocalMemory() override;

  uint8_t* direct() override { return bytes_.data(); }
  std::span<uint8_t> bytes() { return bytes_; }
  Outcome write(uint64_t offset, std::span<const uint8_t> source, MemoryListener& listener,
                uint64_t ticket) override;
  Outcome read(uint64_t offset, std::span<uint8_t> into, MemoryListener& listener,
               uint64_t ticket) override;

 private:
  explicit LocalMemory(std::span<uint8_t> bytes) : bytes_(bytes) {}
  std::span<uint8_t> bytes_;
};

// IBTA 10.6.3.1. Local read is always allowed.
enum Access : uint8_t {
  kLocalWrite = 1 << 0,
  kRemoteWrite = 1 << 1,
  kRemoteRead = 1 << 2,
  kRemoteAtomic = 1 << 3,
};

struct MemoryRegion {
  std::shared_ptr<Memory> memory;  // null: the slot is free
  uint64_t address = 0;  // the virtual address of its first byte, as WRs and RETHs name it
  uint64_t length = 0;
  uint32_t pd = 0;
  uint8_t access = 0;
  uint32_t generation = 0;

  bool covers(uint64_t va, uint64_t size) const {
    return va >= address && size <= length && va - address <= length - size;
  }
};

// The regions of one device. A key is the slot's index, and in its low byte the generation.
class MemoryTable {
 public:
  MemoryTable() { regions_.emplace_back(); }  // index 0 is never used, so that no key is 0

  // EINVAL for remote rights without local write (IBTA C10-130), ENOMEM when all slots are taken.
  Result<uint32_t> add(std::shared_ptr<Memory> memory, uint64_t address, uint64_t length,
                       uint32_t pd, uint8_t access);
  // False when there is no such key. References to it are stale from now on.
  bool remove(uint32_t key);

  // Null unless `key` is valid now. Valid until add() or remove().
  const MemoryRegion* find(uint32_t key) const;
  const MemoryRegion* at(uint32_t index, uint32_t generation) const {
    if (index >= regions_.size()) return nullptr;
    const MemoryRegion& region = regions_[index];
    return region.memory && region.generation == generation ? &region : nullptr;
  }
  static uint32_t index_of(uint32_t key) { return key >> 8; }

 private:
  static constexpr uint32_t kMaxRegions = 1u << 24;

  std::vector<MemoryRegion> regions_;
  std::vector<uint32_t> free_;
};

// The bytes of a payload: of the region it refers to, or of the frame. Null when stale.
const uint8_t* payload_bytes(const Packet& packet);

}  // namespace rocefs
