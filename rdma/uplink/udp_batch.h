// UdpBatch: one message for the kernel: a packet, or several to one destination that the kernel
// segments late (UDP_SEGMENT, udp(7)). All have one size except the last, which may be shorter. A
// packet that one end waits for is the last: it requests an acknowledgement, or is one. The kernel
// numbers the IPv4 IDs of segments from 0, and the ICRC covers them: each packet is sealed with its
// ID in a copy, in a row with the others; the packet itself is unchanged if it has to leave in
// another way.
//
// Core thread.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "core/loop/core_io.h"
#include "rdma/packet/datagram.h"
#include "rdma/packet/packet.h"

namespace rocefs {

struct UdpSocket;

class UdpBatch final : public IoListener {
 public:
  static constexpr size_t kMaxPackets = 32;     // packets; Linux cuts into 64 at least
  static constexpr size_t kMaxOctets = 65'507;  // octets of UDP payload, over IPv4

  class Sender {
   public:
    virtual void sent(UdpBatch& batch, int result) = 0;

   protected:
    ~Sender() = default;
  };
  void set_sender(Sender& sender) { sender_ = &sender; }

  // Begins a batch of packets that leave from `socket`, until hand_back().
  void begin(UdpSocket& socket, const Packet& first);
  // Whether a packet of the same source may join.
  bool takes(const Packet& packet) const;
  // Whether one of its packets goes to the same queue pair as `packet`.
  bool precedes(const Packet& packet) const;
  // Adds a sealed packet, alone.
  void add_sealed(PacketPtr&& packet);
  // Adds the first packet, or one that takes() accepts, unsealed; its IP ID is size() from now on.
  // False if its payload has gone: it is not in the batch.
  bool add(PacketPtr&& packet);
  // Whether no more packets may join.
  bool closed() const { return closed_; }

  size_t size() const { return count_; }
  std::span<const PacketPtr> packets() const { return {packets_.data(), count_}; }
  const UdpAddress& destination() const { return to_; }
  UdpSocket* socket() const { return socket_; }
  // The message to send; valid until the next begin().
  const msghdr& message();
  // Gives the packets to `take(PacketPtr)`, in order, and ends the batch.
  void hand_back(auto take) {
    size_t count = std::exchange(count_, 0);
    for (size_t i = 0; i < count; ++i) take(std::move(packets_[i]));
  }
  void drop() {
    hand_back([](PacketPtr) {});
  }

  size_t place = 0;      // index among the sender's open batches
  size_t looked_at = 0;  // size at the last look

 private:
  // Ancillary data: traffic class and segment size.
  static constexpr size_t kControl = CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(uint16_t));

  void note(PacketPtr&& packet, size_t skipped);
  void completed(int result, uint32_t) override { sender_->sent(*this, result); }

  Sender* sender_ = nullptr;
  UdpSocket* socket_ = nullptr;
  UdpAddress to_;
  uint64_t qpns_ = 0;  // a bit for the last six bits of each QPN in the batch
  uint8_t traffic_class_ = 0;
  bool closed_ = false;
  size_t count_ = 0;
  size_t segment_ = 0;  // octets of the first packet
  size_t octets_ = 0;
  std::array<PacketPtr, kMaxPackets> packets_;
  std::unique_ptr<uint8_t[]> copies_;  // kMaxOctets, allocated when first needed
  std::array<iovec, 2> parts_;
  size_t part_count_ = 0;
  sockaddr_storage name_{};
  alignas(cmsghdr) std::array<uint8_t, kControl> control_{};
  msghdr message_{};
};

}  // namespace rocefs
