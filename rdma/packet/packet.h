// Packet: header bytes as on the wire, and a payload by reference or in a frame. Packets and frames
// come from pools: the packet path allocates only while the pools grow.
//
// A packet is either a RoCE packet of a NIC, or an Ethernet frame of a host's kernel
// (rdma/packet/ethernet_frame.h). On the way from one packet core to another it may also be a PAUSE
// frame (rdma/fabric/core_crossings.h).
//
// Core thread, as everything in rdma/ unless it says otherwise.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/base/slabs.h"
#include "core/base/time.h"
#include "core/loop/engine.h"
#include "rdma/packet/memory.h"
#include "rdma/wire/ethernet.h"
#include "rdma/wire/packet.h"
#include "rdma/wire/telemetry.h"
#include "rdma/wire/transport.h"

namespace rocefs {

inline constexpr size_t kMaxMtu = 4096;
// MTUs of the IBTA: 256, 512, 1024, 2048 or 4096 bytes.
constexpr bool valid_mtu(uint64_t mtu) {
  return mtu >= 256 && mtu <= kMaxMtu && (mtu & (mtu - 1)) == 0;
}
inline constexpr size_t kMaxPad = 3;

// Frame: payload, pad, ICRC and UDP options of one packet, as bytes. Aligned to a cache line, which
// makes copies cheaper; `next` is in a line of its own, because other threads fill the payload.
struct Frame {
  static constexpr size_t kRoce = kMaxMtu + kMaxPad + wire::kIcrcLen + wire::kMaxOptionsLen;
  alignas(64) std::array<uint8_t, std::max(kRoce, kMaxEthernetData)> bytes;
  Frame* next = nullptr;
  class PacketPool* pool = nullptr;  // to which it returns
  // Ethernet frames: both addresses and the type, and two octets that are 0.
  std::array<uint8_t, kEthernetHeader + 2> ethernet;
};

class Link;

// Payload: where the bytes of a packet's payload are.
struct Payload {
  enum class Kind : uint8_t {
    kNone,
    kLocal,  // in a memory region of this daemon: copied once, at the responder
    kLent,   // in memory of this daemon that lends: never stale
    kFrame,  // in the packet's frame, with pad and ICRC behind it
  };
  Kind kind = Kind::kNone;
  bool owes = false;  // the lender waits for the packet; the bytes may be in the frame by now
  uint16_t length = 0;
  // kLocal: stale once the region is removed, or its slot is reused.
  struct Slot {
    uint32_t index = 0, generation = 0;
  };
  union {
    const MemoryTable* table = nullptr;
    Link* link;  // the others, between two packet cores: the one that the packet is on
  };
  union {
    Slot slot = {};
    Memory* lender;  // if it owes
  };
  union {
    uint64_t offset = 0;
    const uint8_t* lent;  // kLent
  };
};

// PacketSender: the queue pair and request to which a packet belongs.
struct PacketSender {
  uint32_t qpn = 0;
  uint32_t serial = 0;    // of the queue pair
  uint32_t position = 0;  // of the request, its low bits
};

// PacketListener: called when a packet that names it is delivered or dropped, from within the code
// that does so; a while later, if that was on another packet core.
class PacketListener {
 public:
  virtual ~PacketListener() = default;
  virtual void packet_gone(const PacketSender& sender) = 0;
};

class PacketPool;

// Ingress of packets that no switch has received, or that one has made.
inline constexpr uint16_t kNoIngress = 0xffff;

// Destination: the switch to which a receiver is cabled, and the port there.
struct Destination {
  uint16_t hub = 0;      // number of the switch in its fabric
  uint16_t port = 0;     // of that switch
  uint32_t version = 0;  // of the table that says so; 0: none
};

// Three cache lines: what every stage reads, the headers, and what is needed at a packet's ends.
struct alignas(64) Packet {
  Packet* next = nullptr;  // next in its FIFO
  union {
    // End of the processing of a CNP; between two packet cores, arrival at the link's far end.
    TimeNs arrival = 0;
    uint32_t flooded;  // in a switch, as one of several copies: number of the packet there
  };
  Payload payload;
  mutable Destination destination;  // found by the first switch, for those behind it
  uint16_t header_len = 0;
  bool sealed = false;     // the frame holds pad and ICRC behind the payload
  bool intact = false;     // the ICRC was verified, and no bit has changed since
  bool ethernet = false;   // an Ethernet frame of a host
  uint8_t option_len = 0;  // octets of UDP options, which are in the frame behind the ICRC's place
  uint16_t ingress = kNoIngress;  // port of arrival at the latest switch
  alignas(64) std::array<uint8_t, wire::kMaxHeaderLen> header;
  PacketSender sender;
  Frame* frame = nullptr;
  PacketPool* pool = nullptr;          // to which it returns
  PacketListener* listener = nullptr;  // null: none

  std::span<const uint8_t> header_bytes() const { return {header.data(), header_len}; }
  wire::Transport transport() const { return {header_bytes(), payload.length}; }
  // Octets from the IP header to the ICRC, or to the end of the options behind it; of an Ethernet
  // frame, between Ethernet header and FCS.
  size_t wire_length() const {
    if (ethernet) return std::max<size_t>(header_len + payload.length, kMinEthernetData);
    return header_len + sealed_length() + option_len;
  }
  // Octets of payload, pad and ICRC.
  size_t sealed_length() const { return (payload.length + kMaxPad) / 4 * 4 + wire::kIcrcLen; }
  // Options; empty if there are none.
  std::span<uint8_t> options() const {
    if (option_len == 0) return {};
    return {frame->bytes.data() + sealed_length(), option_len};
  }
};

// Asks the CPU for what every stage reads, and for most of the headers.
inline void prefetch(const Packet& packet) {
  __builtin_prefetch(&packet, 1);
  __builtin_prefetch(&packet.header, 1);
}
// The same for what is needed at the packet's end.
inline void prefetch_end(const Packet& packet) {
  __builtin_prefetch(&packet.pool);
}

// Whether a packet between two cores is a PAUSE frame: it has no headers. Frames of hosts may have
// none either.
inline bool is_pause(const Packet& packet) {
  return packet.header_len == 0 && !packet.ethernet;
}

// PacketPtr: the owner of a packet. Its destructor gives the packet back to its pool.
//
// A function that may keep a packet has a parameter PacketPtr&&, which costs less than a PacketPtr
// on the packet path: what the function leaves is given back by the caller's variable.
struct PacketReturn {
  void operator()(Packet* packet) const { give_back(packet); }
  // Not inlined: nearly all owners have passed their packet on before they end.
  [[gnu::noinline]] static void give_back(Packet* packet);
};
using PacketPtr = std::unique_ptr<Packet, PacketReturn>;

// Bytes of a payload: those of the memory to which it refers, or of the frame. Null when the
// reference is stale.
inline const uint8_t* payload_bytes(const Packet& packet) {
  const Payload& payload = packet.payload;
  if (payload.kind == Payload::Kind::kNone) return nullptr;
  if (payload.kind == Payload::Kind::kFrame) return packet.frame->bytes.data();
  if (payload.kind == Payload::Kind::kLent) return payload.lent;
  const MemoryRegion* region = payload.table->at(payload.slot.index, payload.slot.generation);
  return region ? region->direct + payload.offset : nullptr;
}

// True for a destination in ff00::/8 or 224.0.0.0/4.
inline bool is_multicast(const Packet& packet) {
  bool ipv6 = packet.header[0] >> 4 == 6;
  return ipv6 ? packet.header[24] == 0xff : packet.header[16] >> 4 == 14;
}

// PacketFifo: a FIFO through Packet::next. It owns its packets.
class PacketFifo {
 public:
  PacketFifo() = default;
  ~PacketFifo() { clear(); }
  PacketFifo(const PacketFifo&) = delete;
  PacketFifo& operator=(const PacketFifo&) = delete;

  bool empty() const { return head_ == nullptr; }
  const Packet* front() const { return head_; }
  void push(PacketPtr&& packet) {
    packet->next = nullptr;
    Packet* last = packet.release();
    (head_ ? tail_->next : head_) = last;
    tail_ = last;
  }
  void push_front(PacketPtr&& packet) {
    packet->next = head_;
    head_ = packet.release();
    if (!head_->next) tail_ = head_;
  }
  // Null if there is none.
  PacketPtr pop() {
    PacketPtr packet(head_);
    if (packet) head_ = packet->next;
    return packet;
  }
  void clear() {
    while (pop()) {
    }
  }

 private:
  Packet* head_ = nullptr;
  Packet* tail_ = nullptr;
};

// PacketStack: packets that other threads give to one, which takes all at once. Lock-free, through
// Packet::next; it owns nothing.
class PacketStack {
 public:
  // Any thread.
  void push(Packet* packet) {
    packet->next = latest_.load(std::memory_order_relaxed);
    while (!latest_.compare_exchange_weak(packet->next, packet, std::memory_order_seq_cst,
                                          std::memory_order_relaxed)) {
    }
  }
  bool empty() const { return latest_.load(std::memory_order_seq_cst) == nullptr; }
  // The latest first, or the first one.
  Packet* take() { return latest_.exchange(nullptr, std::memory_order_acquire); }
  Packet* take_in_order();

 private:
  std::atomic<Packet*> latest_{nullptr};
};

// PacketMail: packets from one thread to another, first in, first out. A list, and no ring: its
// memory is that of the packets under way, however many threads there are. It owns them.
class PacketMail {
 public:
  PacketMail() = default;
  ~PacketMail() {
    while (pop()) {
    }
  }
  PacketMail(const PacketMail&) = delete;
  PacketMail& operator=(const PacketMail&) = delete;

  // Sending thread.
  void push(PacketPtr&& packet) { sent_.push(packet.release()); }
  // Receiving thread. A sender that pushes and then looks whether the receiver sleeps, and a
  // receiver that says that it sleeps and then looks here, do not miss each other.
  bool empty() const { return !taken_ && sent_.empty(); }
  // The next one, if pop() has seen it; else null.
  const Packet* seen() const { return taken_; }
  // Null if there is none.
  PacketPtr pop() {
    if (!taken_ && !sent_.empty()) taken_ = sent_.take_in_order();
    PacketPtr packet(taken_);
    if (packet) taken_ = packet->next;
    return packet;
  }

 private:
  alignas(64) PacketStack sent_;
  alignas(64) Packet* taken_ = nullptr;  // in order
};

class PacketPool {
 public:
  explicit PacketPool(Outstanding& outstanding) : outstanding_(outstanding) {}
  ~PacketPool();
  PacketPool(const PacketPool&) = delete;
  PacketPool& operator=(const PacketPool&) = delete;

  // Takes a packet without payload. The pool outlives its owner.
  PacketPtr acquire();
  // Says that this thread runs a part of the fabric with that pool: packets of others go back to
  // theirs as any thread may give them back. Null: no other thread runs a part.
  static void use_here(PacketPool* pool) { here_ = pool; }
  // Before the engine starts: the packet core of the pool, which settles.
  void set_core(PacketCore& core) { core_ = &core; }
  // The pool's thread: calls the listeners of packets that other threads have given back, and ends
  // their loans. Threads that give such packets back nudge the core.
  void settle();
  bool settled() const { return gone_.empty(); }
  // The pool that this thread may take from: its part's, or this one.
  PacketPool& local() { return here_ ? *here_ : *this; }
  // Stops all calls of listeners: they are destroyed before the packets.
  void forget_listeners() { listeners_gone_ = true; }
  // Gives the packet a frame if it has none; the bytes are not initialised.
  Frame* attach_frame(Packet& packet);

 private:
  friend PacketReturn;
  static constexpr size_t kSlab = 64;

  [[gnu::noinline]] void refill();
  void take_back(Packet* packet);
  void send_back(Packet* packet);
  void keep_frame(Packet& packet);
  [[gnu::noinline]] void refill_frames();

  static inline thread_local PacketPool* here_ = nullptr;

  Outstanding& outstanding_;
  PacketCore* core_ = nullptr;
  bool listeners_gone_ = false;
  Packet* free_packets_ = nullptr;
  Frame* free_frames_ = nullptr;
  Slabs<Packet> packets_;
  std::vector<std::unique_ptr<Frame[]>> frames_;
  // Given back by other threads, with their frames; and those of them for which somebody waits.
  alignas(64) PacketStack returned_;
  std::atomic<Frame*> returned_frames_{nullptr};  // those of this pool, by others
  PacketStack gone_;
};

// Makes a packet of received bytes, from the IP header to the ICRC: headers apart, the rest in a
// frame. It is intact if it carries the ICRC that it should, which `icrc` gets. Null, with nothing
// taken from the pool, for bytes that are no RoCEv2 packet or too many.
PacketPtr packet_of_bytes(PacketPool& pool, std::span<const uint8_t> bytes, uint32_t& icrc);

// Writes payload, pad and ICRC of an unsealed packet: sealed_length() octets. `out` may
// be the packet's own frame. False when the reference is stale.
bool seal_into(const Packet& packet, uint8_t* out);

// Copies a payload by reference into the packet's frame, pads it and computes the ICRC: the packet
// then has the bytes that leave the NIC. False when the reference is stale.
bool materialize(Packet& packet);

// Makes a payload by reference readable for other packet cores, until the packet is back in its
// pool. Memory that lends stays until then; bytes of programs are copied into the packet's frame,
// without pad and ICRC, because a program may change or discard them. False when the reference is
// stale.
bool share_payload(Packet& packet);

// Gives a packet with its payload in place room for UDP options of so many octets. Its IP header
// must count them.
std::span<uint8_t> attach_options(Packet& packet, size_t length);

// Takes the options off a packet that leaves for a network that does not carry them.
void drop_options(Packet& packet);

// Copies a packet, without its sender. The copy has the payload in a frame, because memory that the
// original refers to may change once that is delivered.
PacketPtr copy_of(const Packet& packet);

}  // namespace rocefs
