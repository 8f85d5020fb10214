// A peer that behaves as Linux's Soft-RoCE: packets of a capture between two such hosts,
// readdressed, with their own IP IDs, over the kernel's network; and the answers to them.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "rdma/packet/datagram.h"
#include "rdma/uplink/udp_sockets.h"
#include "rdma/wire/icrc.h"
#include "test/rdma/wire/golden.h"
#include "test/rdma/world.h"

namespace rocefs::test {

// A packet without its addresses.
struct Spoken {
  wire::Headers headers;
  Bytes payload;

  const wire::OpcodeInfo& info() const { return wire::opcode_info(headers.bth.opcode); }
  // Octets from the BTH to the pad: what addresses do not change.
  Bytes transport() const {
    Bytes all(wire::kMaxHeaderLen);
    all.resize(wire::emit(headers, all));
    size_t before = (headers.is_ipv6 ? wire::kIpv6Len : wire::kIpv4Len) + wire::kUdpLen;
    all.erase(all.begin(), all.begin() + static_cast<long>(before));
    all.insert(all.end(), payload.begin(), payload.end());
    all.resize(all.size() + headers.bth.pad_count);
    return all;
  }
};

inline Spoken spoken_of(const Bytes& packet) {
  wire::Parsed parsed;
  REQUIRE(wire::parse(packet, parsed) == wire::ParseError::kNone);
  auto from = packet.begin() + parsed.header_len;
  return {parsed.headers, {from, from + parsed.payload_len}};
}

class Peer {
 public:
  // `other`: address of its peer.
  Peer(const Ip& own, const Ip& other) : own_(own), other_(other) {
    auto in = open_udp({own, wire::kRocePort}, UdpUse::kReceive);
    auto out = open_udp({own, port_}, UdpUse::kSend);
    REQUIRE(in);
    REQUIRE(out);
    in_ = std::move(*in);
    out_ = std::move(*out);
    if (is_mapped_ipv4(own)) raw_ = Fd(::socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW));
  }

  const Ip& address() const { return own_; }
  // Whether IP headers are as captured. Without root only the ICRC is computed from the captured
  // ones, and a UDP socket at the other end sees no more than that.
  bool raw() const { return static_cast<bool>(raw_); }

  // Sends with the packet's IP ID and flags; an IPv6 packet over IPv4 gets some.
  void send(const Spoken& spoken) {
    Bytes bytes = bytes_of(spoken);
    size_t before = is_mapped_ipv4(other_) ? wire::kIpv4Len : wire::kIpv6Len;
    if (!raw_)
      bytes.erase(bytes.begin(), bytes.begin() + static_cast<long>(before + wire::kUdpLen));
    sockaddr_storage name{};
    socklen_t length = to_sockaddr({other_, raw_ ? uint16_t{0} : wire::kRocePort}, name);
    const Fd& by = raw_ ? raw_ : out_;
    REQUIRE(::sendto(by.get(), bytes.data(), bytes.size(), 0, reinterpret_cast<sockaddr*>(&name),
                     length) == static_cast<ssize_t>(bytes.size()));
    ++sent_;
  }
  uint64_t sent() const { return sent_; }

  // From the IP header to the ICRC.
  Bytes bytes_of(const Spoken& spoken) const {
    wire::Headers headers = spoken.headers;
    if (is_mapped_ipv4(own_)) {
      if (std::exchange(headers.is_ipv6, false)) {
        headers.v4 = {};
        headers.v4.id = static_cast<uint16_t>(0x9000 + headers.bth.psn % 0x1000);
        headers.v4.flags_fragment = 0x4000;
        headers.v4.ttl = 64;
        headers.v4.protocol = IPPROTO_UDP;
      }
      std::copy_n(own_.begin() + 12, 4, headers.v4.src.begin());
      std::copy_n(other_.begin() + 12, 4, headers.v4.dst.begin());
    } else {
      if (!std::exchange(headers.is_ipv6, true)) {
        headers.v6 = {};
        headers.v6.next_header = IPPROTO_UDP;
        headers.v6.hop_limit = 64;
      }
      headers.v6.src = own_;
      headers.v6.dst = other_;
    }
    if (!raw_) headers.udp.src_port = port_;
    uint8_t pad = headers.bth.pad_count;
    wire::finish_lengths(headers, spoken.payload.size());
    REQUIRE(headers.bth.pad_count == pad);
    Bytes bytes(wire::kMaxHeaderLen);
    bytes.resize(wire::emit(headers, bytes));
    Bytes only_headers = bytes;
    bytes.insert(bytes.end(), spoken.payload.begin(), spoken.payload.end());
    bytes.resize(bytes.size() + pad + wire::kIcrcLen);
    auto pads = std::span(bytes).last(pad + wire::kIcrcLen).first(pad);
    wire::store_icrc(std::span(bytes).last(wire::kIcrcLen),
                     wire::icrc(only_headers, headers.is_ipv6, spoken.payload, pads));
    return bytes;
  }

  // Next packet of the other end within `limit` of wall time. Its ICRC is right for IP ID 0 and DF.
  std::optional<Spoken> hear(TimeNs limit) {
    timeval patience{limit / kSecond, limit % kSecond / 1000};
    ::setsockopt(in_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    sockaddr_storage name{};
    socklen_t length = sizeof name;
    ssize_t got;
    do {  // the kernel's work for an io_uring that this thread has made interrupts it
      got = ::recvfrom(in_.get(), room_.data() + kDatagramHeadroom, kMaxDatagram, 0,
                       reinterpret_cast<sockaddr*>(&name), &length);
    } while (got < 0 && errno == EINTR);
    if (got < 0) return {};
    UdpAddress from;
    REQUIRE(from_sockaddr(reinterpret_cast<sockaddr&>(name), from));
    REQUIRE(from.ip == other_);
    REQUIRE(from.port >= wire::kFirstSourcePort);
    IcrcSolver::Verdict verdict{};
    PacketPtr packet = packet_of_datagram(
        pool_, solver_, from, {own_, wire::kRocePort}, 0, 0,
        std::span(room_).first(kDatagramHeadroom + static_cast<size_t>(got)), verdict);
    REQUIRE(packet);
    REQUIRE(verdict == IcrcSolver::Verdict::kRight);
    Bytes bytes(packet->header_bytes().begin(), packet->header_bytes().end());
    auto behind = packet->frame->bytes.begin();
    bytes.insert(bytes.end(), behind,
                 behind + static_cast<long>(packet->wire_length() - packet->header_len));
    return spoken_of(bytes);
  }

 private:
  const Ip own_, other_;
  Fd in_, out_, raw_;
  const uint16_t port_ = 0xc198;  // where it is not the capture's
  uint64_t sent_ = 0;
  Outstanding outstanding_;
  PacketPool pool_{outstanding_};
  const IcrcSolver solver_;
  Bytes room_ = Bytes(kDatagramHeadroom + kMaxDatagram);
};

}  // namespace rocefs::test
