// Options that a data packet carries for its sender, and that the acknowledgement takes back: a
// time stamp, the number of congestion marks, and in-band telemetry (INT) of the switches on the
// way, as HPCC uses it (Li et al., SIGCOMM 2019).
//
// They are UDP options (RFC 9868), in the octets that the IP length counts and the UDP length does
// not: a peer or an analyser that knows none sees a RoCE packet as ever. The checksum of the area
// is 0, as the RFC allows where that of UDP is. Kind 127 is for experiments. Numbers are
// big-endian.
//
//    0  checksum of the area, 0      2  kind 127    3  length, from the kind on
//    4  experiment                   6  flags       7  hops stamped << 4 | room for hops
//    8  time stamp: ns modulo 2^32  12  marked packets since the last answer, at most 255
//   13  way: XOR of the ports' numbers  15  switches for whose hop there was no room
//   16  hops, 12 octets each
//
// A hop: octets that stayed in the queue / 16, octets sent by the port / 64, time in ns, rate of
// the port in Mb/s: 24 bits each, the second and third modulo 2^24, the others clipped. The paper
// has 8 octets, with the rate as an index of a table; links here have any rate.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

#include "rdma/wire/bytes.h"

namespace rocefs::wire {

// The longest way in a fat tree. Each packet has room for so many, whatever its way is.
inline constexpr size_t kMaxHops = 5;
inline constexpr size_t kHopLen = 12;
inline constexpr size_t kOptionsLen = 16;  // without hops
inline constexpr size_t kMaxOptionsLen = kOptionsLen + kMaxHops * kHopLen;

struct Hop {
  uint64_t queue = 0;    // octets
  uint64_t sent = 0;     // octets
  uint64_t time_ns = 0;  // engine time
  uint64_t rate_bps = 0;
  uint16_t port = 0;  // number that no other port has, as far as 16 bits go
};

// View of the options of a packet. The octets may have any values.
class Telemetry {
 public:
  explicit Telemetry(std::span<uint8_t> bytes) : bytes_(bytes) {}

  // Writes options without hops that have been stamped; their length gives the room.
  void begin(uint32_t timestamp) {
    std::memset(bytes_.data(), 0, bytes_.size());
    bytes_[2] = kKind;
    bytes_[3] = static_cast<uint8_t>(bytes_.size() - 2);
    store16(&bytes_[4], kExperiment);
    bytes_[7] = static_cast<uint8_t>((bytes_.size() - kOptionsLen) / kHopLen);
    store32(&bytes_[8], timestamp);
  }
  bool valid() const {
    return bytes_.size() >= kOptionsLen && bytes_[2] == kKind && bytes_[3] == bytes_.size() - 2 &&
           load16(&bytes_[4]) == kExperiment && hops() <= room() &&
           kOptionsLen + room() * kHopLen == bytes_.size();
  }
  uint32_t timestamp() const { return load32(&bytes_[8]); }
  uint8_t marked() const { return bytes_[12]; }
  size_t hops() const { return bytes_[7] >> 4; }
  size_t room() const { return bytes_[7] & 0xf; }
  uint16_t way() const { return load16(&bytes_[13]); }
  // Switches behind the stamped hops that had no room, at most 255.
  uint8_t missed() const { return bytes_[15]; }
  bool is_answer() const { return bytes_[6] & kAnswer; }

  void make_answer(uint32_t marked) {
    bytes_[6] |= kAnswer;
    bytes_[12] = static_cast<uint8_t>(std::min(marked, 255u));
  }
  // Adds a hop, or counts it as missed if the room is full. An answer, or options without any room,
  // take none.
  void stamp(const Hop& hop) {
    if (!valid() || is_answer() || room() == 0) return;
    if (hops() == room()) {
      if (bytes_[15] < 255) ++bytes_[15];
      return;
    }
    uint8_t* at = &bytes_[kOptionsLen + hops() * kHopLen];
    store24(at, std::min<uint64_t>(hop.queue / kQueueUnit, kMax24));
    store24(at + 3, hop.sent / kSentUnit & kMax24);
    store24(at + 6, hop.time_ns & kMax24);
    store24(at + 9, std::min<uint64_t>(hop.rate_bps / kRateUnit, kMax24));
    store16(&bytes_[13], way() ^ hop.port);
    bytes_[7] = static_cast<uint8_t>(bytes_[7] + 0x10);
  }
  // Fields of a stamped hop, in their units.
  struct RawHop {
    uint32_t queue, sent, time, rate;
  };
  RawHop hop(size_t index) const {
    const uint8_t* at = &bytes_[kOptionsLen + index * kHopLen];
    return {load24(at), load24(at + 3), load24(at + 6), load24(at + 9)};
  }

  static constexpr uint64_t kQueueUnit = 16, kSentUnit = 64, kRateUnit = 1'000'000;

 private:
  static constexpr uint8_t kKind = 127;
  static constexpr uint16_t kExperiment = 0x5246;
  static constexpr uint8_t kAnswer = 0x80;
  static constexpr uint32_t kMax24 = 0xffffff;

  static void store24(uint8_t* at, uint64_t value) {
    at[0] = static_cast<uint8_t>(value >> 16);
    store16(at + 1, static_cast<uint16_t>(value));
  }
  static uint32_t load24(const uint8_t* at) { return uint32_t{at[0]} << 16 | load16(at + 1); }

  std::span<uint8_t> bytes_;
};

}  // namespace rocefs::wire
