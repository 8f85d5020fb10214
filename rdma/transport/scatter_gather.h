// Moving payloads between packets and the memory that scatter/gather lists name. Memory that
// answers later is asked part by part; the caller counts the answers.
#pragma once

#include <cstdint>
#include <span>

#include "rdma/packet/memory.h"
#include "rdma/packet/packet.h"
#include "rdma/packet/verbs.h"

namespace rocefs {

// Context of a move: the queue pair, its rights, and the listener, whose `memory_done(ticket)` is
// called once for each pending part.
struct Mover {
  const MemoryTable& table;
  uint32_t pd;
  uint32_t qpn;
  uint8_t access;  // an Access mask; 0 is local reading
  MemoryListener& listener;
  bool behind = false;  // earlier bytes are pending: memory that answers at once waits for them
};

struct Moved {
  uint32_t pending = 0;  // parts for which memory_done() will be called
  bool failed = false;   // a part was refused or failed; others may have been moved
};

// Whether every entry lies in a region that allows it.
bool entries_allowed(const Mover& mover, std::span<const Sge> entries);

// Payload by reference to `part`, which lies in the region.
inline Payload reference(const MemoryTable& table, const Sge& part, const MemoryRegion& region) {
  return {.kind = Payload::Kind::kLocal,
          .length = static_cast<uint16_t>(part.length),
          .table = &table,
          .slot = {MemoryTable::index_of(part.lkey), region.generation},
          .offset = region.offset_of(part.address)};
}

// Gives `packet` a payload: bytes offset..offset+length of the listed memory. By reference where
// one region of the daemon's memory holds them all; in a frame otherwise.
Moved gather(const Mover& mover, std::span<const Sge> entries, uint64_t offset, uint32_t length,
             Packet& packet, uint64_t ticket);

// Places `bytes` from `offset` on. The bytes must not change before memory_done().
Moved scatter(const Mover& mover, std::span<const Sge> entries, uint64_t offset,
              std::span<const uint8_t> bytes, uint64_t ticket);

// Places a packet's payload, which is copied into its frame first where memory answers later: then
// only the packet must stay.
Moved scatter_payload(const Mover& mover, std::span<const Sge> entries, uint64_t offset,
                      Packet& packet, uint64_t ticket);

}  // namespace rocefs
