// UdpBatch: one message for the kernel to send: a packet, or several to one destination that it
// cuts apart again late (UDP_SEGMENT, udp(7)). All are of one size but the last, which may be
// shorter. One that somebody waits for is the last: it asks for an acknowledgement, or is one. The
// kernel counts their IPv4 IDs from 0, and the ICRC covers them: each packet is sealed with its
// place, in a copy that stands behind the one before it, and is as it was if it has to leave
// otherwise.
//
// On the core's thread.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "core/loop/io_ring.h"
#include "rdma/packet/datagram.h"
#include "rdma/packet/packet.h"

namespace rocefs {

struct UdpSocket;

class UdpBatch final : public IoListener {
 public:
  static constexpr size_t kMaxPackets = 32;     // packets; Linux cuts into 64 at least
  static constexpr size_t kMaxOctets = 65'507;  // of UDP payload, over IPv4

  class Sender {
   public:
    virtual void sent(UdpBatch& batch, int result) = 0;

   protected:
    ~Sender() = default;
  };
  void set_sender(Sender& sender) { sender_ = &sender; }

  // For packets that leave from `socket`, until forget().
  void begin(UdpSocket& socket, const Packet& first);
  // Whether a packet of the same source may join.
  bool takes(const Packet& packet) const;
  // Whether one of its packets goes to the same queue pair.
  bool precedes(const Packet& packet) const;
  // One that is sealed, alone.
  void add_sealed(Packet* packet);
  // The first, or one that it takes, not sealed; its IP ID is size() from now on. False if its
  // payload has gone: it is not in the batch.
  bool add(Packet* packet);
  // None may join any more.
  bool closed() const { return closed_; }

  size_t size() const { return count_; }
  std::span<Packet* const> packets() const { return {packets_.data(), count_}; }
  const UdpAddress& destination() const { return to_; }
  UdpSocket* socket() const { return socket_; }
  // What is to be sent; lives until the batch begins anew.
  const msghdr& message();
  void forget() { count_ = 0; }

  size_t place = 0;      // among its owner's that are open
  size_t looked_at = 0;  // its size then

 private:
  // Traffic class, and size of what it is to be cut into.
  static constexpr size_t kControl = CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(uint16_t));

  void note(Packet* packet, size_t octets);
  void completed(int result, uint32_t) override { sender_->sent(*this, result); }

  Sender* sender_ = nullptr;
  UdpSocket* socket_ = nullptr;
  UdpAddress to_;
  uint64_t qpns_ = 0;  // bit: last six bits of a QPN that it has packets for
  uint8_t traffic_class_ = 0;
  bool closed_ = false;
  size_t count_ = 0;
  size_t segment_ = 0;  // octets of the first
  size_t octets_ = 0;
  std::array<Packet*, kMaxPackets> packets_;
  std::unique_ptr<uint8_t[]> copies_;  // kMaxOctets, when first wanted
  std::array<iovec, 2> parts_;
  size_t part_count_ = 0;
  sockaddr_storage name_{};
  alignas(cmsghdr) std::array<uint8_t, kControl> control_{};
  msghdr message_{};
};

}  // namespace rocefs
