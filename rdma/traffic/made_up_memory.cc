#include "rdma/traffic/made_up_memory.h"

#include <algorithm>

namespace rocefs {

Memory::Outcome MadeUpMemory::read(uint64_t offset, std::span<uint8_t> into, MemoryListener&,
                                   uint64_t) {
  while (!into.empty()) {
    uint64_t place = offset / plan_.size, at = offset % plan_.size;
    uint32_t pair = static_cast<uint32_t>(place / plan_.depth);
    std::span<uint8_t> piece = into.first(std::min<uint64_t>(into.size(), plan_.size - at));
    pattern_.make(piece, plan_.message_index(pair, place % plan_.depth), at);
    into = into.subspan(piece.size());
    offset += piece.size();
  }
  return Outcome::kDone;
}

Memory::Outcome MadeUpMemory::write(uint64_t, std::span<const uint8_t>, MemoryListener&, uint64_t) {
  return Outcome::kFailed;
}

Memory::Outcome MadeUpMemory::atomic(uint64_t, const AtomicOperation&, uint64_t&, MemoryListener&,
                                     uint64_t) {
  return Outcome::kFailed;
}

}  // namespace rocefs
