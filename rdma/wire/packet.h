// Parsing and emitting whole RoCEv2 packets, from the IP header to the ICRC. Allocates nothing,
// keeps no state, and never reads outside the given bytes.
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
inline constexpr size_t kXrcethLen = 4;
inline constexpr size_t kMaxExtensionLen = kXrcethLen + 28;  // XRCETH and AtomicETH
inline constexpr size_t kMaxHeaderLen = kIpv6Len + kUdpLen + kBthLen + kMaxExtensionLen;

enum class ParseError : uint8_t {
  kNone,
  kTruncated,  // fewer octets than the headers say
  kBadIpVersion,
  kBadIpHeader,  // options, or a bad checksum
  kFragment,
  kNotUdp,
  kNotRoce,    // another UDP port
  kBadLength,  // UDP longer than IP, or too short for the opcode
  kBadOpcode,  // neither valid nor reserved
  kBadTver,
  kBadPad,      // octets after the headers not a multiple of 4, or fewer than the pad count
  kBadPayload,  // a payload that the opcode does not have
};
std::string_view name(ParseError error);

struct Parsed {
  Headers headers;
  uint16_t header_len = 0;   // from the IP header to the end of the extension headers
  uint16_t payload_len = 0;  // without pad and ICRC
  uint8_t pad_len = 0;
  bool has_icrc = false;  // whole packet: pad and ICRC follow the payload
};

// `packet` begins with the IP header. Octets beyond the UDP length are ignored: UDP options
// (telemetry.h), and what pads a short Ethernet frame. The IPv4 header checksum must be right; the
// UDP checksum is not checked, since the ICRC covers more. On an error `out` is unspecified.
ParseError parse(std::span<const uint8_t> packet, Parsed& out);

// parse() for a packet whose payload, pad and ICRC are stored apart: `bytes` are exactly its
// headers, followed by `payload_len` octets of payload. The IPv4 header checksum is not checked:
// such headers were made here, or have passed parse().
ParseError parse_headers(std::span<const uint8_t> bytes, size_t payload_len, Parsed& out);

// Sets pad count, IP and UDP lengths for a payload of that many octets, the IPv4 checksum, and a
// UDP checksum of 0. The opcode must be valid, and the packet shorter than 64 KiB.
void finish_lengths(Headers& headers, size_t payload_len);

// Sets the checksum of an IPv4 header without options. `header` has kIpv4Len octets.
void set_ipv4_checksum(std::span<uint8_t> header);

// Headers common to all packets of a connection, as octets: emitting a packet is a copy and a few
// stores.
class HeaderTemplate {
 public:
  // Fields that differ from packet to packet.
  struct Fields {
    Opcode opcode = Opcode::kRcSendOnly;
    uint32_t psn = 0;
    bool ack_req = false;
    bool solicited = false;
    uint8_t ecn = 0;          // for a traffic class without ECN bits
    bool sr_capable = false;  // kSrCapable
    uint8_t reserved7 = 0;
    uint16_t port_offset = 0;  // added to the connection's UDP source port
    uint8_t option_len = 0;    // octets of UDP options behind the ICRC
  };

  HeaderTemplate() = default;
  // IP, UDP and BTH of `headers`, without lengths, checksums and the members of Fields.
  explicit HeaderTemplate(const Headers& headers);
  // Writes all headers of a packet with `payload_len` octets of payload, with lengths and
  // checksums; returns the number of octets. `out` has room for kMaxHeaderLen.
  size_t emit(const Fields& fields, const Extensions& extensions, size_t payload_len,
              std::span<uint8_t> out) const;
  // Whether a packet with these headers, from the IP header on, is of the opposite direction: from
  // the template's destination to its source.
  bool answered_by(const uint8_t* headers) const;

 private:
  std::array<uint8_t, kIpv6Len + kUdpLen + kBthLen> bytes_{};
  size_t ip_len_ = kIpv4Len;
  uint32_t ip_sum_ = 0;  // sum of the IPv4 header without total length and checksum
};

// Writes the headers with exactly these field values; returns the number of octets. `out` has room
// for kMaxHeaderLen.
size_t emit(const Headers& headers, std::span<uint8_t> out);

}  // namespace rocefs::wire
