// Prefetch: packets whose payloads come from memory that answers later. Payloads are asked for
// before their turn, up to a limit of bytes, so that the memory moves much at once and the wire
// does not wait for it.
#pragma once

#include <cstdint>

#include "rdma/packet/packet.h"
#include "rdma/packet/work_queue.h"
#include "rdma/transport/scatter_gather.h"

namespace rocefs {

class Prefetch {
 public:
  // Position of a packet: its message and its offset in the message.
  struct Key {
    uint64_t message = 0;
    uint64_t offset = 0;
    bool operator==(const Key&) const = default;
  };

  Prefetch() : queue_(kMaxPackets) {}

  // Whether no fetched packet is wanted.
  bool empty() const { return wanted_ == queue_.tail(); }
  // Whether there is room for another packet; low(): whether for a whole lump, since packets are
  // asked for in lumps, not one for each that is taken.
  bool wants_more() const;
  bool low() const;
  // Whether there is no room even for the next packet, which has a place of its own: memory is
  // still busy with packets that are no longer wanted, and done() will follow for them.
  bool full() const { return queue_.full(); }
  // Whether the packet whose turn it is can be taken, or has failed.
  bool settled() const { return !empty() && queue_.at(wanted_).pending == 0; }

  // Ticket for a request to memory, with which done() will be called.
  uint64_t ticket() const { return queue_.tail(); }
  // Adds a packet, part of whose payload is pending. Must not be full.
  void add(PacketPtr&& packet, const Key& key, const Moved& moved);
  void done(uint64_t ticket, bool ok);

  enum class State { kAbsent, kPending, kFailed, kReady };
  // State of the packet whose turn it is. kAbsent if another packet is the next one fetched.
  State state(const Key& key);
  // Takes the packet whose turn it is, which must be ready.
  PacketPtr take();

  // Drops all fetched packets. Memory may still write into them.
  void drop();
  // Whether memory still works on a packet.
  bool pending() const { return pending_ > 0; }

 private:
  struct Entry {
    PacketPtr packet;
    Key key;
    uint32_t pending = 0;
    bool failed = false;
  };
  static constexpr size_t kMaxPackets = 512;

  WorkQueue<Entry> queue_;
  uint64_t wanted_ = 0;   // position of the oldest wanted entry
  uint64_t bytes_ = 0;    // payload of the wanted entries
  uint32_t pending_ = 0;  // entries that memory works on
};

}  // namespace rocefs
