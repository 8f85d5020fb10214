// Parsing and emitting whole RoCEv2 packets, from the IP header to the ICRC. Nothing here
// allocates, keeps state or reads outside the bytes it is given.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "rdma/wire/headers.h"

namespace rocefs::wire {

inline constexpr uint16_t kRocePort = 4791;
// RoCEv2's UDP source ports: their 14 low bits are entropy.
inline constexpr uint16_t kFirstSourcePort = 0xc000;
inline constexpr size_t kIpv4Len = 20;
inline constexpr size_t kIpv6Len = 40;
inline constexpr size_t kUdpLen = 8;
inline constexpr size_t kBthLen = 12;
inline constexpr size_t kIcrcLen = 4;
inline constexpr size_t kMaxExtensionLen = 28;  // AtomicETH
inline constexpr size_t kMaxHeaderLen = kIpv6Len + kUdpLen + kBthLen + kMaxExtensionLen;

enum class ParseError : uint8_t {
  kNone,
  kTruncated,  // fewer octets than the headers say
  kBadIpVersion,
  kBadIpHeader,  // options, or a wrong checksum
  kFragment,
  kNotUdp,
  kNotRoce,    // another UDP port
  kBadLength,  // IP and UDP disagree, or there is no room for what the opcode calls for
  kBadOpcode,
  kBadTver,
  kBadPad,      // what follows the headers is no multiple of 4 octets, or less than the pad count
  kBadPayload,  // a payload where the opcode has none
};
std::string_view name(ParseError error);

struct Parsed {
  Headers headers;
  uint16_t header_len = 0;   // from the IP header to the end of the extension headers
  uint16_t payload_len = 0;  // without pad and ICRC
  uint8_t pad_len = 0;
  bool has_icrc = false;  // pad and ICRC stand behind the payload: parse() took a whole packet
};

// `packet` begins with the IP header. Octets behind the length that IP states are ignored, as
// Ethernet pads short frames. The IPv4 header checksum must be right; the UDP checksum is not
// looked at, since the ICRC covers more. On an error `out` is unspecified.
ParseError parse(std::span<const uint8_t> packet, Parsed& out);

// The same for a packet whose payload, pad and ICRC travel apart: `bytes` are exactly its headers,
// `payload_len` octets of payload belong to them. The IPv4 header checksum is not looked at: they
// were made here, or have passed parse().
ParseError parse_headers(std::span<const uint8_t> bytes, size_t payload_len, Parsed& out);

// Sets pad count, IP and UDP lengths for a payload of that many octets, the IPv4 checksum, and a
// UDP checksum of 0. The opcode must be valid, and the packet shorter than 64 KiB.
void finish_lengths(Headers& headers, size_t payload_len);

// Makes the checksum of an IPv4 header without options right. `header` has kIpv4Len octets.
void set_ipv4_checksum(std::span<uint8_t> header);

// What all packets of a connection have in common, as octets: emitting one is a copy and a few
// stores.
class HeaderTemplate {
 public:
  // What differs from packet to packet.
  struct Fields {
    Opcode opcode = Opcode::kRcSendOnly;
    uint32_t psn = 0;
    bool ack_req = false;
    bool solicited = false;
    uint8_t ecn = 0;        // put into a traffic class that has no ECN bits
    uint8_t reserved6 = 0;  // of the BTH, as Bth says
    uint8_t reserved7 = 0;
    uint16_t port_offset = 0;  // the UDP source port is so far up from the connection's own
  };

  HeaderTemplate() = default;
  // IP, UDP and BTH of `headers`, but for lengths, checksums and what Fields has.
  explicit HeaderTemplate(const Headers& headers);
  // Writes all headers of a packet with that payload, lengths and checksums right; returns how many
  // octets. `out` has room for kMaxHeaderLen.
  size_t emit(const Fields& fields, const Extensions& extensions, size_t payload_len,
              std::span<uint8_t> out) const;
  // Whether these headers, from the IP header on, come from the address that the template's go to,
  // and go to where these come from.
  bool answered_by(const uint8_t* headers) const;

 private:
  std::array<uint8_t, kIpv6Len + kUdpLen + kBthLen> bytes_{};
  size_t ip_len_ = kIpv4Len;
  uint32_t ip_sum_ = 0;  // of the IPv4 header without total length and checksum
};

// Writes the headers exactly as the fields say; returns how many octets. `out` has room for
// kMaxHeaderLen.
size_t emit(const Headers& headers, std::span<uint8_t> out);

}  // namespace rocefs::wire
