// Prefetch: packets whose payloads come from memory that answers later. They are asked for before
// their turn, up to so many bytes, so that the memory moves much at once and the wire does not wait
// for it.
#pragma once

#include <cstdint>

#include "rdma/packet/packet.h"
#include "rdma/packet/work_queue.h"
#include "rdma/transport/scatter_gather.h"

namespace rocefs {

class Prefetch {
 public:
  // Which packet of which message.
  struct Key {
    uint64_t message = 0;
    uint64_t offset = 0;
    bool operator==(const Key&) const = default;
  };

  explicit Prefetch(PacketPool& pool) : pool_(pool), queue_(kMaxPackets) {}
  ~Prefetch();

  // Whether nothing is fetched that is still wanted.
  bool empty() const { return wanted_ == queue_.tail(); }
  // Whether another one should be asked for: in lumps, not one for each that is taken.
  bool wants_more() const;
  bool low() const;
  // Whether not even the next packet has room, which is kept for it: memory is still busy with what
  // is not wanted any more, and done() will be told of that.
  bool full() const { return queue_.full(); }
  // Whether the packet whose turn it is can be taken, or has failed.
  bool settled() const { return !empty() && queue_.at(wanted_).pending == 0; }

  // For whoever asks memory: the ticket by which done() is told.
  uint64_t ticket() const { return queue_.tail(); }
  // Not when it is full. Some of the packet's payload is pending.
  void add(Packet* packet, const Key& key, const Moved& moved);
  void done(uint64_t ticket, bool ok);

  enum class State { kAbsent, kPending, kFailed, kReady };
  // Of the packet whose turn it is. Whatever else is fetched, if it is not the next, is not wanted.
  State state(const Key& key);
  // When it is ready.
  Packet* take();

  // Nothing that is fetched is wanted any more. Memory may still write into the packets.
  void drop();
  // Whether memory still works on a packet.
  bool pending() const { return pending_ > 0; }

 private:
  struct Entry {
    Packet* packet = nullptr;
    Key key;
    uint32_t pending = 0;
    bool failed = false;
  };
  static constexpr size_t kMaxPackets = 512;

  void forget(Entry& entry);

  PacketPool& pool_;
  WorkQueue<Entry> queue_;
  uint64_t wanted_ = 0;   // the oldest entry that is wanted
  uint64_t bytes_ = 0;    // of those that are wanted
  uint32_t pending_ = 0;  // entries that memory works on
};

}  // namespace rocefs
