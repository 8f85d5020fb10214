#include "rdma/packet/packet.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "rdma/wire/bytes.h"
#include "rdma/wire/icrc.h"

namespace rocefs {

static_assert(sizeof(Packet) == 3 * 64);

namespace {

void redeem(Packet& packet) {
  packet.payload.owes = false;
  packet.payload.lender->take_back();
}

}  // namespace

// Packets that came back after the last settle() may owe.
PacketPool::~PacketPool() {
  for (Packet* packet = gone_.take(); packet; packet = packet->next) {
    if (packet->payload.owes) redeem(*packet);
  }
}

// Takes back what other parts have returned, or makes packets.
void PacketPool::refill() {
  free_packets_ = returned_.take();
  if (free_packets_) return;
  free_packets_ = &packets_.make();
  free_packets_->pool = this;
}

PacketPtr PacketPool::acquire() {
  if (!free_packets_) refill();
  Packet* packet = free_packets_;
  free_packets_ = packet->next;
  if (packet->frame) keep_frame(*packet);
  packet->next = nullptr;
  packet->payload.kind = Payload::Kind::kNone;
  packet->payload.length = 0;
  packet->destination.version = 0;
  packet->listener = nullptr;
  packet->sealed = packet->intact = packet->ethernet = false;
  packet->option_len = 0;
  packet->ingress = kNoIngress;
  ++outstanding_.packets;
  return PacketPtr(packet);
}

void PacketReturn::give_back(Packet* packet) {
  packet->pool->take_back(packet);
}

// A packet may have got its frame in another part: that pool would run out of frames if this one
// kept it.
void PacketPool::keep_frame(Packet& packet) {
  Frame* frame = std::exchange(packet.frame, nullptr);
  if (frame->pool == this) {
    frame->next = free_frames_;
    free_frames_ = frame;
    return;
  }
  std::atomic<Frame*>& returned = frame->pool->returned_frames_;
  frame->next = returned.load(std::memory_order_relaxed);
  while (!returned.compare_exchange_weak(frame->next, frame, std::memory_order_release,
                                         std::memory_order_relaxed)) {
  }
}

// A packet of another part: its pool takes it when it has no other left. Between regions there are
// reliable connections alone, which have no listeners.
void PacketPool::send_back(Packet* packet) {
  --outstanding_.packets;
  PacketPool& owner = *packet->pool;
  const bool awaited = packet->listener || packet->payload.owes;
  assert(owner.core_ || !packet->payload.owes);
  if (!awaited || !owner.core_) return owner.returned_.push(packet);
  owner.gone_.push(packet);
  owner.core_->nudge();
}

void PacketPool::settle() {
  if (gone_.empty()) return;
  for (Packet* packet = gone_.take_in_order(); packet;) {
    Packet* next = packet->next;
    ++outstanding_.packets;  // counted already
    take_back(packet);
    packet = next;
  }
}

Packet* PacketStack::take_in_order() {
  Packet* first = nullptr;
  for (Packet* packet = take(); packet;) {
    Packet* next = packet->next;
    packet->next = first;
    first = packet;
    packet = next;
  }
  return first;
}

void PacketPool::take_back(Packet* packet) {
  if (here_ && here_ != this) return here_->send_back(packet);
  if (packet->payload.owes) redeem(*packet);
  if (packet->frame) keep_frame(*packet);
  packet->next = free_packets_;
  free_packets_ = packet;
  --outstanding_.packets;
  if (listeners_gone_) return;
  // Reads the sender of a free packet: nobody acquires one in between.
  if (packet->listener) packet->listener->packet_gone(packet->sender);
}

void PacketPool::refill_frames() {
  free_frames_ = returned_frames_.exchange(nullptr, std::memory_order_acquire);
  if (free_frames_) return;
  frames_.push_back(std::make_unique<Frame[]>(kSlab));
  for (size_t i = 0; i < kSlab; ++i) {
    Frame& frame = frames_.back()[i];
    frame.pool = this;
    frame.next = free_frames_;
    free_frames_ = &frame;
  }
}

Frame* PacketPool::attach_frame(Packet& packet) {
  if (packet.frame) return packet.frame;
  if (&local() != this) return local().attach_frame(packet);
  if (!free_frames_) refill_frames();
  packet.frame = free_frames_;
  free_frames_ = packet.frame->next;
  return packet.frame;
}

PacketPtr packet_of_bytes(PacketPool& pool, std::span<const uint8_t> bytes, uint32_t& icrc) {
  wire::Parsed parsed;
  if (wire::parse(bytes, parsed) != wire::ParseError::kNone || parsed.payload_len > kMaxMtu) {
    return nullptr;
  }
  PacketPtr packet = pool.acquire();
  packet->header_len = parsed.header_len;
  std::memcpy(packet->header.data(), bytes.data(), parsed.header_len);
  packet->payload.kind = Payload::Kind::kFrame;
  packet->payload.length = parsed.payload_len;
  packet->sealed = true;
  const std::span body = bytes.subspan(parsed.header_len, parsed.payload_len + parsed.pad_len);
  uint8_t* out = pool.attach_frame(*packet)->bytes.data();
  icrc = wire::copy_with_icrc(packet->header_bytes(), parsed.headers.is_ipv6, body, {}, out);
  std::memcpy(out + body.size(), body.data() + body.size(), wire::kIcrcLen);
  packet->intact = icrc == wire::load_icrc({out + body.size(), wire::kIcrcLen});
  return packet;
}

bool seal_into(const Packet& packet, uint8_t* out) {
  constexpr std::array<uint8_t, kMaxPad> kZeros{};
  const uint8_t* source = payload_bytes(packet);
  const size_t length = packet.payload.length;
  if (!source && length > 0) return false;
  const size_t behind = packet.sealed_length() - wire::kIcrcLen;
  const std::span pad(kZeros.data(), behind - length);
  const bool ipv6 = (packet.header[0] >> 4) == 6;
  uint32_t icrc;
  if (source == out) {
    std::ranges::copy(pad, out + length);
    icrc = wire::icrc(packet.header_bytes(), ipv6, {out, behind}, {});
  } else {
    icrc = wire::copy_with_icrc(packet.header_bytes(), ipv6, {source, length}, pad, out);
  }
  wire::store_icrc({out + behind, wire::kIcrcLen}, icrc);
  return true;
}

bool materialize(Packet& packet) {
  if (packet.sealed) return true;
  if (packet.payload.length > 0 && !payload_bytes(packet)) return false;
  uint8_t* out = packet.pool->attach_frame(packet)->bytes.data();
  packet.sealed = seal_into(packet, out);
  packet.payload.kind = Payload::Kind::kFrame;
  return true;
}

bool share_payload(Packet& packet) {
  Payload& payload = packet.payload;
  if (payload.kind != Payload::Kind::kLocal) return true;
  const MemoryRegion* region = payload.table->at(payload.slot.index, payload.slot.generation);
  if (!region) return false;
  const uint8_t* bytes = region->direct + payload.offset;
  if (!region->memory->lends()) {
    std::memcpy(packet.pool->attach_frame(packet)->bytes.data(), bytes, payload.length);
    payload.kind = Payload::Kind::kFrame;
    return true;
  }
  payload.kind = Payload::Kind::kLent;
  payload.lent = bytes;
  if (region->blank) return true;  // its pages stay for ever
  region->memory->lend(region->memory);
  payload.lender = region->memory.get();
  payload.owes = true;
  return true;
}

std::span<uint8_t> attach_options(Packet& packet, size_t length) {
  packet.pool->attach_frame(packet);
  packet.option_len = static_cast<uint8_t>(length);
  return packet.options();
}

// The ICRC covers the length in the IP header. It is linear: one that was wrong stays wrong by the
// same bits.
void drop_options(Packet& packet) {
  if (packet.option_len == 0) return;
  bool ipv6 = packet.header[0] >> 4 == 6;
  std::span<uint8_t> body;
  if (packet.sealed) body = {packet.frame->bytes.data(), packet.sealed_length() - wire::kIcrcLen};
  uint32_t before = packet.sealed ? wire::icrc(packet.header_bytes(), ipv6, body, {}) : 0;
  size_t length = packet.header_len + packet.sealed_length();
  packet.option_len = 0;
  if (ipv6) {
    wire::store16(&packet.header[4], static_cast<uint16_t>(length - wire::kIpv6Len));
  } else {
    wire::store16(&packet.header[2], static_cast<uint16_t>(length));
    wire::set_ipv4_checksum(packet.header);
  }
  if (!packet.sealed) return;
  std::span<uint8_t> icrc(body.data() + body.size(), wire::kIcrcLen);
  uint32_t after = wire::icrc(packet.header_bytes(), ipv6, body, {});
  wire::store_icrc(icrc, wire::load_icrc(icrc) ^ before ^ after);
}

PacketPtr copy_of(const Packet& packet) {
  PacketPtr copy = packet.pool->local().acquire();
  copy->header = packet.header;
  copy->header_len = packet.header_len;
  copy->payload = packet.payload;
  copy->payload.owes = false;
  copy->sealed = packet.sealed;
  if (const uint8_t* bytes = payload_bytes(packet)) {
    size_t sealed = packet.sealed_length();
    size_t length = packet.sealed && !packet.ethernet ? sealed : packet.payload.length;
    std::memcpy(copy->pool->attach_frame(*copy)->bytes.data(), bytes, length);
    copy->payload.kind = Payload::Kind::kFrame;
  }
  if (std::span<uint8_t> options = packet.options(); !options.empty()) {
    std::ranges::copy(options, attach_options(*copy, options.size()).begin());
  }
  copy->intact = packet.intact && packet.ethernet;
  copy->ethernet = packet.ethernet;
  if (packet.ethernet) copy->frame->ethernet = packet.frame->ethernet;
  return copy;
}

}  // namespace rocefs
