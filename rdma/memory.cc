#include "rdma/memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

namespace rocefs {

std::shared_ptr<LocalMemory> LocalMemory::create(uint64_t size) {
  if (size == 0) return std::shared_ptr<LocalMemory>(new LocalMemory({}));
  void* bytes = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (bytes == MAP_FAILED) return nullptr;
  return std::shared_ptr<LocalMemory>(new LocalMemory({static_cast<uint8_t*>(bytes), size}));
}

LocalMemory::~LocalMemory() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

Memory::Outcome LocalMemory::write(uint64_t offset, std::span<const uint8_t> source,
                                   MemoryListener&, uint64_t) {
  if (!source.empty()) std::memcpy(bytes_.data() + offset, source.data(), source.size());
  return Outcome::kDone;
}

Memory::Outcome LocalMemory::read(uint64_t offset, std::span<uint8_t> into, MemoryListener&,
                                  uint64_t) {
  if (!into.empty()) std::memcpy(into.data(), bytes_.data() + offset, into.size());
  return Outcome::kDone;
}

Result<uint32_t> MemoryTable::add(std::shared_ptr<Memory> memory, uint64_t address, uint64_t length,
                                  uint32_t pd, uint8_t access) {
  if ((access & (kRemoteWrite | kRemoteAtomic)) && !(access & kLocalWrite)) {
    return Error{EINVAL, "remote write or atomic rights need the local write right"};
  }
  uint32_t index = 0;
  if (!free_.empty()) {
    index = free_.back();
    free_.pop_back();
  } else if (regions_.size() < kMaxRegions) {
    index = static_cast<uint32_t>(regions_.size());
    regions_.emplace_back();
  } else {
    return Error{ENOMEM, "no memory region is free"};
  }
  MemoryRegion& region = regions_[index];
  uint32_t generation = region.generation + 1;
  region = {std::move(memory), address, length, pd, access, generation};
  return index << 8 | (generation & 0xff);
}

bool MemoryTable::remove(uint32_t key) {
  if (!find(key)) return false;
  uint32_t index = index_of(key);
  regions_[index].memory.reset();
  free_.push_back(index);
  return true;
}

const MemoryRegion* MemoryTable::find(uint32_t key) const {
  uint32_t index = index_of(key);
  if (index >= regions_.size()) return nullptr;
  const MemoryRegion& region = regions_[index];
  return region.memory && (region.generation & 0xff) == (key & 0xff) ? &region : nullptr;
}

const uint8_t* payload_bytes(const Packet& packet) {
  switch (packet.payload.kind) {
    case Payload::Kind::kFrame:
      return packet.frame->bytes.data();
    case Payload::Kind::kLocal: {
      const MemoryRegion* region =
          packet.payload.table->at(packet.payload.index, packet.payload.generation);
      return region ? region->memory->direct() + packet.payload.offset : nullptr;
    }
    case Payload::Kind::kNone:
      return nullptr;
  }
  return nullptr;
}

}  // namespace rocefs
