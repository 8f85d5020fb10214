// Moving payloads between packets and the memory that scatter/gather lists name. Memory that
// answers later is asked part by part; whoever asks counts the answers.
#pragma once

#include <cstdint>
#include <span>

#include "rdma/packet/memory.h"
#include "rdma/packet/packet.h"
#include "rdma/packet/verbs.h"

namespace rocefs {

// Who moves, with which rights, and who is told: `memory_done(ticket)` comes once for each part
// that is pending.
struct Mover {
  PacketPool& pool;
  const MemoryTable& table;
  uint32_t pd;
  uint32_t qpn;
  uint8_t access;  // an Access mask; 0 is local reading
  MemoryListener& listener;
};

struct Moved {
  uint32_t pending = 0;  // parts that will be told of
  bool failed = false;   // a part may not be moved, or could not be; some may have been
};

// Whether every entry lies in a region that allows it.
bool entries_allowed(const Mover& mover, std::span<const Sge> entries);

// Gives `packet` a payload: bytes offset..offset+length of what the list names. By reference where
// one region of the daemon's memory holds them all; in a frame otherwise.
Moved gather(const Mover& mover, std::span<const Sge> entries, uint64_t offset, uint32_t length,
             Packet* packet, uint64_t ticket);

// Places `bytes` from `offset` on. They stay as they are until told.
Moved scatter(const Mover& mover, std::span<const Sge> entries, uint64_t offset,
              std::span<const uint8_t> bytes, uint64_t ticket);

// The same for a packet's payload, which is brought into its frame first where memory answers
// later: then the packet, and nothing but the packet, must stay.
Moved scatter_payload(const Mover& mover, std::span<const Sge> entries, uint64_t offset,
                      Packet* packet, uint64_t ticket);

}  // namespace rocefs
