// Packet: header bytes as they stand on the wire, and a payload that travels by reference or in a
// frame. Packets and frames come from pools: the packet path allocates only while the pools grow.
//
// Owned by the packet core's thread, as everything in rdma/ is unless it says otherwise.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/base/time.h"
#include "core/loop/engine.h"
#include "rdma/wire/packet.h"
#include "rdma/wire/transport.h"

namespace rocefs {

inline constexpr size_t kMaxMtu = 4096;
// One of IBTA's: 256, 512, 1024, 2048 or 4096 bytes.
constexpr bool valid_mtu(uint64_t mtu) {
  return mtu >= 256 && mtu <= kMaxMtu && (mtu & (mtu - 1)) == 0;
}
inline constexpr size_t kMaxPad = 3;

// Payload, pad and ICRC of one packet, as bytes. They begin with a cache line, which makes them
// cheaper to move, and `next` lies in none that the payload fills on other threads.
struct Frame {
  alignas(64) std::array<uint8_t, kMaxMtu + kMaxPad + wire::kIcrcLen> bytes;
  Frame* next = nullptr;
};

class MemoryTable;

// Where a packet's payload is.
struct Payload {
  enum class Kind : uint8_t {
    kNone,
    kLocal,  // in a memory region of this daemon: copied once, at the responder
    kFrame,  // in the packet's frame, with pad and ICRC behind it
  };
  Kind kind = Kind::kNone;
  uint16_t length = 0;
  // kLocal: stale when the region has gone or its slot is in use by another one.
  const MemoryTable* table = nullptr;
  uint32_t index = 0;
  uint32_t generation = 0;
  uint64_t offset = 0;
};

// Is told when a packet that says so has been delivered or dropped; in the middle of whatever drops
// it.
class PacketListener {
 public:
  virtual ~PacketListener() = default;
  virtual void packet_gone(uint32_t qpn, uint64_t serial, uint64_t position) = 0;
};

// Of which queue pair's request a packet is a part.
struct PacketSender {
  PacketListener* listener = nullptr;  // null: nobody wants to know
  uint32_t qpn = 0;
  uint64_t serial = 0;
  uint64_t position = 0;
};

struct Packet {
  Packet* next = nullptr;  // in whichever FIFO holds it
  Payload payload;
  Frame* frame = nullptr;
  PacketSender sender;
  uint16_t header_len = 0;
  bool sealed = false;   // the frame holds pad and ICRC behind the payload
  bool intact = false;   // and that ICRC has been found right, and nobody has changed a bit since
  uint16_t ingress = 0;  // the switch port through which it came, while it is in a switch
  TimeNs arrival = 0;    // at the far end of the link that it is on
  std::array<uint8_t, wire::kMaxHeaderLen> header;

  std::span<const uint8_t> header_bytes() const { return {header.data(), header_len}; }
  wire::Transport transport() const { return {header_bytes(), payload.length}; }
  // Bytes from the IP header to the ICRC.
  size_t wire_length() const {
    return header_len + (payload.length + kMaxPad) / 4 * 4 + wire::kIcrcLen;
  }
};

// Bytes of a payload: those of the region to which it refers, or of the frame. Null when the
// reference is stale.
const uint8_t* payload_bytes(const Packet& packet);

// Whether its destination is a group: ff00::/8 or 224.0.0.0/4.
inline bool is_multicast(const Packet& packet) {
  bool ipv6 = packet.header[0] >> 4 == 6;
  return ipv6 ? packet.header[24] == 0xff : packet.header[16] >> 4 == 14;
}

// FIFO of packets through Packet::next.
class PacketFifo {
 public:
  bool empty() const { return head_ == nullptr; }
  Packet* front() const { return head_; }
  void push(Packet* packet) {
    packet->next = nullptr;
    (head_ ? tail_->next : head_) = packet;
    tail_ = packet;
  }
  void push_front(Packet* packet) {
    packet->next = head_;
    if (!head_) tail_ = packet;
    head_ = packet;
  }
  Packet* pop() {
    Packet* packet = head_;
    if (packet) head_ = packet->next;
    return packet;
  }

 private:
  Packet* head_ = nullptr;
  Packet* tail_ = nullptr;
};

class PacketPool {
 public:
  explicit PacketPool(Outstanding& outstanding) : outstanding_(outstanding) {}
  PacketPool(const PacketPool&) = delete;
  PacketPool& operator=(const PacketPool&) = delete;

  // A packet without payload. It must come back through release().
  Packet* acquire();
  void release(Packet* packet);
  // From now on no listener is told: they go before the packets do.
  void forget_listeners() { listeners_gone_ = true; }
  // Gives the packet a frame if it has none; its bytes are not initialised.
  Frame* attach_frame(Packet* packet);

 private:
  static constexpr size_t kSlab = 64;

  Outstanding& outstanding_;
  bool listeners_gone_ = false;
  Packet* free_packets_ = nullptr;
  Frame* free_frames_ = nullptr;
  std::vector<std::unique_ptr<Packet[]>> packets_;
  std::vector<std::unique_ptr<Frame[]>> frames_;
};

// A packet made of received bytes, from the IP header to the ICRC: headers apart, the rest in a
// frame. Null when it is no RoCEv2 packet or larger than any; nothing is taken from the pool then.
Packet* packet_of_bytes(PacketPool& pool, std::span<const uint8_t> bytes);

// Writes payload, pad and ICRC of a packet that has not been sealed: wire_length() - header_len
// octets. Its frame's may be the place. False when the reference is stale.
bool seal_into(const Packet& packet, uint8_t* out);

// Copies a payload that travels by reference into the packet's frame, pads it and computes its
// ICRC, so that the packet is the bytes that leave the NIC. False when the reference is stale.
bool materialize(PacketPool& pool, Packet* packet);

// The same packet once more, of nobody's request: its payload is its own, because what the
// original's refers to may change when that has been delivered.
Packet* copy_of(PacketPool& pool, const Packet& packet);

}  // namespace rocefs
