// A router between two hosts that changes what it forwards: each host takes it for the other one.
// Marks, loses, duplicates and reorders packets, and recomputes their ICRC, since addresses
// change.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <cstring>
#include <deque>
#include <functional>
#include <thread>

#include "rdma/packet/datagram.h"
#include "rdma/uplink/udp_sockets.h"
#include "rdma/wire/icrc.h"
#include "test/rdma/world.h"

namespace rocefs::test {

class Relay {
 public:
  struct Odds {
    double drop = 0, duplicate = 0, overtake = 0;
    bool mark = false;  // congestion experienced, on what goes from `a` to `b`
  };

  Relay(const Ip& own, const Ip& a, const Ip& b, const Odds& odds)
      : own_(own), a_(a), b_(b), odds_(odds), rng_(1, "relay") {
    auto in = open_udp({own, wire::kRocePort}, UdpUse::kReceive);
    auto out = open_udp({own, kPort}, UdpUse::kSend);
    REQUIRE(in);
    REQUIRE(out);
    in_ = std::move(*in);
    out_ = std::move(*out);
    timeval patience{0, 2000};
    ::setsockopt(in_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    thread_ = std::thread([this] { run(); });
  }
  ~Relay() {
    ending_ = true;
    thread_.join();
  }

  std::atomic<uint64_t> passed{0}, dropped{0}, doubled{0}, overtaken{0}, cnps{0}, damaged{0};
  std::atomic<bool> cut{false};  // loses everything

 private:
  static constexpr uint16_t kPort = 0xd000;
  struct Held {
    std::vector<uint8_t> bytes;
    Ip to;
    uint8_t tos;
  };

  void run() {
    std::vector<uint8_t> room(kDatagramHeadroom + kMaxDatagram);
    while (!ending_) {
      sockaddr_storage name{};
      socklen_t length = sizeof name;
      ssize_t got = ::recvfrom(in_.get(), room.data() + kDatagramHeadroom, kMaxDatagram, 0,
                               reinterpret_cast<sockaddr*>(&name), &length);
      UdpAddress from;
      if (got < 0) {
        release_held();
      } else if (from_sockaddr(reinterpret_cast<sockaddr&>(name), from)) {
        forward(from, std::span(room).first(kDatagramHeadroom + static_cast<size_t>(got)));
      }
    }
  }

  void forward(const UdpAddress& from, std::span<uint8_t> room) {
    IcrcSolver::Verdict verdict{};
    UdpAddress here{own_, wire::kRocePort};
    PacketPtr packet = packet_of_datagram(pool_, solver_, from, here, 0, 0, room, verdict);
    if (!packet) return;
    wire::Parsed parsed;
    bool whole = wire::parse_headers(packet->header_bytes(), packet->payload.length, parsed) ==
                 wire::ParseError::kNone;
    if (!whole || verdict != IcrcSolver::Verdict::kRight) ++damaged;
    if (parsed.headers.bth.opcode == wire::Opcode::kCnp) ++cnps;
    Held one{readdressed(*packet, parsed, from.ip == a_ ? b_ : a_), from.ip == a_ ? b_ : a_,
             static_cast<uint8_t>(odds_.mark && from.ip == a_ ? 3 : 0)};
    if (cut || rng_.chance(odds_.drop)) {
      ++dropped;
    } else if (rng_.chance(odds_.overtake)) {
      ++overtaken;
      held_.push_back(std::move(one));
    } else {
      send(one);
      if (rng_.chance(odds_.duplicate)) {
        ++doubled;
        send(one);
      }
      if (rng_.chance(0.3)) release_held();
    }
  }

  // From the BTH on, with the ICRC of its new addresses.
  std::vector<uint8_t> readdressed(const Packet& packet, wire::Parsed& parsed, const Ip& to) {
    std::copy_n(own_.begin() + 12, 4, parsed.headers.v4.src.begin());
    std::copy_n(to.begin() + 12, 4, parsed.headers.v4.dst.begin());
    parsed.headers.udp.src_port = kPort;
    std::vector<uint8_t> headers(wire::kMaxHeaderLen);
    headers.resize(wire::emit(parsed.headers, headers));
    size_t behind = packet.wire_length() - packet.header_len - wire::kIcrcLen;
    std::span<const uint8_t> payload(packet.frame->bytes.data(), behind);
    std::vector<uint8_t> bytes(headers.begin() + wire::kIpv4Len + wire::kUdpLen, headers.end());
    bytes.insert(bytes.end(), payload.begin(), payload.end());
    bytes.resize(bytes.size() + wire::kIcrcLen);
    wire::store_icrc(std::span(bytes).last(wire::kIcrcLen),
                     wire::icrc(headers, false, payload, {}));
    return bytes;
  }

  void send(const Held& one) {
    int tos = one.tos;
    ::setsockopt(out_.get(), IPPROTO_IP, IP_TOS, &tos, sizeof tos);
    sockaddr_storage name{};
    socklen_t length = to_sockaddr({one.to, wire::kRocePort}, name);
    (void)!::sendto(out_.get(), one.bytes.data(), one.bytes.size(), 0,
                    reinterpret_cast<sockaddr*>(&name), length);
    ++passed;
  }
  void release_held() {
    for (; !held_.empty(); held_.pop_front()) send(held_.front());
  }

  const Ip own_, a_, b_;
  const Odds odds_;
  Rng rng_;
  Fd in_, out_;
  Outstanding outstanding_;
  PacketPool pool_{outstanding_};
  const IcrcSolver solver_;
  std::deque<Held> held_;
  std::atomic<bool> ending_{false};
  std::thread thread_;
};

}  // namespace rocefs::test
