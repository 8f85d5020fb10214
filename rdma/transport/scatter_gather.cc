#include "rdma/transport/scatter_gather.h"

#include <algorithm>
#include <cstring>

#include "rdma/packet/store.h"

namespace rocefs {
namespace {

// The parts of entries that bytes offset..offset+length fall into, one after the other.
class Parts {
 public:
  Parts(std::span<const Sge> entries, uint64_t offset, uint64_t length)
      : entries_(entries), skip_(offset), left_(length) {}

  // Finds the next part; false when there is none. A list that is too short ends early: see left().
  bool next(Sge& part) {
    while (left_ > 0 && at_ < entries_.size()) {
      const Sge& entry = entries_[at_++];
      if (skip_ >= entry.length) {
        skip_ -= entry.length;
        continue;
      }
      uint64_t size = std::min<uint64_t>(left_, entry.length - skip_);
      part = {entry.address + skip_, static_cast<uint32_t>(size), entry.lkey};
      skip_ = 0;
      left_ -= size;
      return true;
    }
    return false;
  }
  uint64_t left() const { return left_; }

 private:
  std::span<const Sge> entries_;
  size_t at_ = 0;
  uint64_t skip_;
  uint64_t left_;
};

void take(Moved& moved, Memory::Outcome outcome) {
  moved.pending += outcome == Memory::Outcome::kPending;
  moved.failed |= outcome == Memory::Outcome::kFailed;
}

// Region that `part` lies in; null if it may not be moved.
inline const MemoryRegion* region_of(const Mover& mover, const Sge& part) {
  return mover.table.allow(part.lkey, mover.pd, mover.qpn, mover.access, part.address, part.length);
}

}  // namespace

bool entries_allowed(const Mover& mover, std::span<const Sge> entries) {
  return std::all_of(entries.begin(), entries.end(), [&](const Sge& entry) {
    return entry.length == 0 || region_of(mover, entry);
  });
}

Moved gather(const Mover& mover, std::span<const Sge> entries, uint64_t offset, uint32_t length,
             Packet& packet, uint64_t ticket) {
  Moved moved;
  packet.payload.length = static_cast<uint16_t>(length);
  if (length == 0) return moved;
  Parts parts(entries, offset, length);
  uint8_t* into = nullptr;
  for (Sge part; parts.next(part);) {
    const MemoryRegion* region = region_of(mover, part);
    if (!region) {
      moved.failed = true;
      return moved;
    }
    if (!into && part.length == length && region->direct) {
      packet.payload = reference(mover.table, part, *region);
      return moved;
    }
    if (!into) {
      packet.payload.kind = Payload::Kind::kFrame;
      into = packet.pool->attach_frame(packet)->bytes.data();
    }
    take(moved, region->memory->read(region->offset_of(part.address), {into, part.length},
                                     mover.listener, ticket));
    into += part.length;
  }
  moved.failed |= parts.left() > 0;
  return moved;
}

namespace {

// Places `bytes` from `offset` on. Before memory that answers later takes some of them, `keep`
// returns where they stay until it has; null if they cannot stay.
template <class Keep>
Moved scatter_kept(const Mover& mover, std::span<const Sge> entries, uint64_t offset,
                   std::span<const uint8_t> bytes, uint64_t ticket, Keep keep) {
  Moved moved;
  Parts parts(entries, offset, bytes.size());
  size_t done = 0;
  for (Sge part; parts.next(part); done += part.length) {
    const MemoryRegion* region = region_of(mover, part);
    if (region && region->blank) continue;
    const uint8_t* source = bytes.data();
    bool direct = region && region->direct && !mover.behind;
    if (region && !direct) source = keep();
    if (!region || !source) {
      moved.failed = true;
      return moved;
    }
    uint64_t at = region->offset_of(part.address);
    if (direct) {
      store_tail_last(region->direct + at, source + done, part.length);
    } else {
      take(moved, region->memory->write(at, {source + done, part.length}, mover.listener, ticket));
    }
  }
  moved.failed |= parts.left() > 0;
  return moved;
}

}  // namespace

Moved scatter(const Mover& mover, std::span<const Sge> entries, uint64_t offset,
              std::span<const uint8_t> bytes, uint64_t ticket) {
  return scatter_kept(mover, entries, offset, bytes, ticket, [&] { return bytes.data(); });
}

Moved scatter_payload(const Mover& mover, std::span<const Sge> entries, uint64_t offset,
                      Packet& packet, uint64_t ticket) {
  size_t length = packet.payload.length;
  if (length == 0) return {};
  auto into_frame = [&]() -> const uint8_t* {
    bool framed = packet.payload.kind == Payload::Kind::kFrame || materialize(packet);
    return framed ? packet.frame->bytes.data() : nullptr;
  };
  std::span<const uint8_t> bytes(payload_bytes(packet), length);
  return scatter_kept(mover, entries, offset, bytes, ticket, into_frame);
}

}  // namespace rocefs
