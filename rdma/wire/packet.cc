#include "rdma/wire/packet.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "rdma/wire/bytes.h"

namespace rocefs::wire {
namespace {

constexpr uint8_t kUdpProtocol = 17;
constexpr uint16_t kMoreFragments = 0x2000;
constexpr uint16_t kFragmentOffset = 0x1fff;

constexpr bool extensions_fit() {
  for (const OpcodeInfo& info : kOpcodeTable) {
    if (info.header_len > kMaxExtensionLen) return false;
  }
  return true;
}
static_assert(extensions_fit());

uint16_t folded(uint32_t sum) {
  sum = (sum & 0xffff) + (sum >> 16);
  sum += sum >> 16;
  return static_cast<uint16_t>(~sum);
}

uint16_t checksum(const uint8_t* header) {
  uint32_t sum = 0;
  for (size_t i = 0; i < kIpv4Len; i += 2) sum += load16(header + i);
  return folded(sum);
}

// Whether an IPv4 header's words, its checksum among them, add up to 0 in ones' complement: that is
// modulo 0xffff, of whatever size and byte order the words are (RFC 1071).
bool checksum_right(const uint8_t* header) {
  uint64_t sum = 0;
  for (size_t i = 0; i < kIpv4Len; i += sizeof(uint32_t)) {
    uint32_t word;
    std::memcpy(&word, header + i, sizeof word);
    sum += word;
  }
  return sum % 0xffff == 0;
}

size_t pad_of(size_t payload_len) {
  return -payload_len % 4;
}

size_t udp_length(const OpcodeInfo& info, size_t payload_len) {
  size_t length =
      kUdpLen + kBthLen + info.header_len + payload_len + pad_of(payload_len) + kIcrcLen;
  assert(kIpv4Len + length <= 0xffff);
  return length;
}

// Each parse_* reads one header at the front of `rest` and takes it off.

ParseError parse_ipv4(std::span<const uint8_t>& rest, Ipv4& ip, size_t& ip_payload) {
  if (rest.size() < kIpv4Len) return ParseError::kTruncated;
  const uint8_t* at = rest.data();
  if (at[0] != 0x45) return ParseError::kBadIpHeader;
  ip.tos = at[1];
  ip.total_length = load16(at + 2);
  ip.id = load16(at + 4);
  ip.flags_fragment = load16(at + 6);
  ip.ttl = at[8];
  ip.protocol = at[9];
  ip.checksum = load16(at + 10);
  std::memcpy(ip.src.data(), at + 12, 4);
  std::memcpy(ip.dst.data(), at + 16, 4);
  if (ip.flags_fragment & (kMoreFragments | kFragmentOffset)) return ParseError::kFragment;
  if (ip.protocol != kUdpProtocol) return ParseError::kNotUdp;
  if (ip.total_length < kIpv4Len) return ParseError::kBadLength;
  ip_payload = ip.total_length - kIpv4Len;
  rest = rest.subspan(kIpv4Len);
  return ParseError::kNone;
}

ParseError parse_ipv6(std::span<const uint8_t>& rest, Ipv6& ip, size_t& ip_payload) {
  if (rest.size() < kIpv6Len) return ParseError::kTruncated;
  const uint8_t* at = rest.data();
  uint32_t first = load32(at);
  ip.traffic_class = static_cast<uint8_t>(first >> 20);
  ip.flow_label = first & kFlowLabelMask;
  ip.payload_length = load16(at + 4);
  ip.next_header = at[6];
  ip.hop_limit = at[7];
  std::memcpy(ip.src.data(), at + 8, 16);
  std::memcpy(ip.dst.data(), at + 24, 16);
  if (ip.next_header != kUdpProtocol) return ParseError::kNotUdp;
  ip_payload = ip.payload_length;
  rest = rest.subspan(kIpv6Len);
  return ParseError::kNone;
}

// Octets that only the IP length counts are UDP options (RFC 9868). Leaves the UDP length in
// `ip_payload`.
ParseError parse_udp(std::span<const uint8_t>& rest, Udp& udp, size_t& ip_payload) {
  if (rest.size() < kUdpLen) return ParseError::kTruncated;
  const uint8_t* at = rest.data();
  udp.src_port = load16(at);
  udp.dst_port = load16(at + 2);
  udp.length = load16(at + 4);
  udp.checksum = load16(at + 6);
  if (udp.dst_port != kRocePort) return ParseError::kNotRoce;
  if (udp.length > ip_payload) return ParseError::kBadLength;
  ip_payload = udp.length;
  rest = rest.subspan(kUdpLen);
  return ParseError::kNone;
}

ParseError parse_bth(std::span<const uint8_t>& rest, Bth& bth) {
  if (rest.size() < kBthLen) return ParseError::kTruncated;
  const uint8_t* at = rest.data();
  const OpcodeInfo& info = opcode_info(at[0]);
  if (!info.valid && !info.reserved) return ParseError::kBadOpcode;
  bth.opcode = static_cast<Opcode>(at[0]);
  bth.solicited = at[1] & 0x80;
  bth.mig_req = at[1] & 0x40;
  bth.pad_count = (at[1] >> 4) & 3;
  bth.tver = at[1] & 0xf;
  bth.pkey = load16(at + 2);
  bth.fecn = at[4] & 0x80;
  bth.becn = at[4] & 0x40;
  bth.reserved6 = at[4] & 0x3f;
  bth.dest_qpn = load32(at + 4) & 0xffffff;
  bth.ack_req = at[8] & 0x80;
  bth.reserved7 = at[8] & 0x7f;
  bth.psn = load32(at + 8) & 0xffffff;
  if (bth.tver != 0) return ParseError::kBadTver;
  rest = rest.subspan(kBthLen);
  return ParseError::kNone;
}

ParseError parse_extensions(std::span<const uint8_t>& rest, const OpcodeInfo& info, Headers& out) {
  if (rest.size() < info.header_len) return ParseError::kTruncated;
  const uint8_t* at = rest.data();
  if (info.has_xrceth) {
    out.xrc = {at[0], load32(at) & 0xffffff};
    at += kXrcethLen;
  }
  if (info.has_deth) {
    out.deth = {load32(at), at[4], load32(at + 4) & 0xffffff};
    at += 8;
  }
  if (info.has_reth) {
    out.reth = {load64(at), load32(at + 8), load32(at + 12)};
    at += 16;
  }
  if (info.has_atomic_eth) {
    out.atomic = {load64(at), load32(at + 8), load64(at + 12), load64(at + 20)};
    at += 28;
  }
  if (info.has_aeth) {
    out.aeth = {at[0], load32(at) & 0xffffff};
    at += 4;
  }
  if (info.has_atomic_ack_eth) {
    out.atomic_ack = {load64(at)};
    at += 8;
  }
  if (info.has_imm) {
    out.imm = load32(at);
    at += 4;
  }
  if (info.has_ieth) out.ieth = {load32(at)};
  if (info.has_cnp_reserved) std::memcpy(out.cnp_reserved.data(), at, 16);
  rest = rest.subspan(info.header_len);
  return ParseError::kNone;
}

// Reads all headers; `behind`: the octets that follow them by the UDP length: payload, pad and
// ICRC.
ParseError parse_all(std::span<const uint8_t> bytes, Parsed& out, size_t& behind) {
  if (bytes.empty()) return ParseError::kTruncated;
  std::span<const uint8_t> rest = bytes;
  Headers& headers = out.headers;
  uint8_t version = bytes[0] >> 4;
  if (version != 4 && version != 6) return ParseError::kBadIpVersion;
  headers.is_ipv6 = version == 6;
  size_t ip_payload = 0;
  ParseError error = headers.is_ipv6 ? parse_ipv6(rest, headers.v6, ip_payload)
                                     : parse_ipv4(rest, headers.v4, ip_payload);
  if (error == ParseError::kNone) error = parse_udp(rest, headers.udp, ip_payload);
  if (error == ParseError::kNone) error = parse_bth(rest, headers.bth);
  if (error != ParseError::kNone) return error;
  const OpcodeInfo& info = opcode_info(headers.bth.opcode);
  size_t wanted = kUdpLen + kBthLen + info.header_len + kIcrcLen;
  if (ip_payload < wanted) return ParseError::kBadLength;
  error = parse_extensions(rest, info, headers);
  out.header_len = static_cast<uint16_t>(bytes.size() - rest.size());
  behind = ip_payload - wanted + kIcrcLen;
  return error;
}

// Payload and pad together are a multiple of four octets.
ParseError check_payload(Parsed& out, size_t behind) {
  size_t padded = behind - kIcrcLen;
  const Bth& bth = out.headers.bth;
  if (padded % 4 != 0 || bth.pad_count > padded) return ParseError::kBadPad;
  if (padded > 0 && !opcode_info(bth.opcode).has_payload) return ParseError::kBadPayload;
  out.pad_len = bth.pad_count;
  out.payload_len = static_cast<uint16_t>(padded - bth.pad_count);
  return ParseError::kNone;
}

uint8_t* emit_ipv4(const Ipv4& ip, uint8_t* at) {
  at[0] = 0x45;
  at[1] = ip.tos;
  store16(at + 2, ip.total_length);
  store16(at + 4, ip.id);
  store16(at + 6, ip.flags_fragment);
  at[8] = ip.ttl;
  at[9] = ip.protocol;
  store16(at + 10, ip.checksum);
  std::memcpy(at + 12, ip.src.data(), 4);
  std::memcpy(at + 16, ip.dst.data(), 4);
  return at + kIpv4Len;
}

uint8_t* emit_ipv6(const Ipv6& ip, uint8_t* at) {
  store32(at,
          uint32_t{6} << 28 | uint32_t{ip.traffic_class} << 20 | (ip.flow_label & kFlowLabelMask));
  store16(at + 4, ip.payload_length);
  at[6] = ip.next_header;
  at[7] = ip.hop_limit;
  std::memcpy(at + 8, ip.src.data(), 16);
  std::memcpy(at + 24, ip.dst.data(), 16);
  return at + kIpv6Len;
}

uint8_t* emit_bth(const Bth& bth, uint8_t* at) {
  at[0] = static_cast<uint8_t>(bth.opcode);
  at[1] = static_cast<uint8_t>(bth.solicited << 7 | bth.mig_req << 6 | (bth.pad_count & 3) << 4 |
                               (bth.tver & 0xf));
  store16(at + 2, bth.pkey);
  store32(at + 4, static_cast<uint32_t>(bth.fecn) << 31 | static_cast<uint32_t>(bth.becn) << 30 |
                      uint32_t{bth.reserved6} << 24 | (bth.dest_qpn & 0xffffff));
  store32(at + 8, static_cast<uint32_t>(bth.ack_req) << 31 | uint32_t{bth.reserved7} << 24 |
                      (bth.psn & 0xffffff));
  return at + kBthLen;
}

uint8_t* emit_extensions(const Extensions& headers, const OpcodeInfo& info, uint8_t* at) {
  const uint8_t* end = at + info.header_len;
  if (info.has_xrceth) {
    store32(at, uint32_t{headers.xrc.reserved} << 24 | (headers.xrc.srqn & 0xffffff));
    at += kXrcethLen;
  }
  if (info.has_deth) {
    store32(at, headers.deth.qkey);
    store32(at + 4, uint32_t{headers.deth.reserved} << 24 | (headers.deth.src_qpn & 0xffffff));
    at += 8;
  }
  if (info.has_reth) {
    store64(at, headers.reth.va);
    store32(at + 8, headers.reth.rkey);
    store32(at + 12, headers.reth.dma_len);
    at += 16;
  }
  if (at == end) return at;  // the rest is not in packets of a WRITE
  if (info.has_atomic_eth) {
    store64(at, headers.atomic.va);
    store32(at + 8, headers.atomic.rkey);
    store64(at + 12, headers.atomic.swap_add);
    store64(at + 20, headers.atomic.compare);
    at += 28;
  }
  if (info.has_aeth) {
    store32(at, uint32_t{headers.aeth.syndrome} << 24 | (headers.aeth.msn & 0xffffff));
    at += 4;
  }
  if (info.has_atomic_ack_eth) {
    store64(at, headers.atomic_ack.original);
    at += 8;
  }
  if (info.has_imm) {
    store32(at, headers.imm);
    at += 4;
  }
  if (info.has_ieth) {
    store32(at, headers.ieth.rkey);
    at += 4;
  }
  if (info.has_cnp_reserved) {
    std::memcpy(at, headers.cnp_reserved.data(), 16);
    at += 16;
  }
  return at;
}

}  // namespace

std::string_view name(ParseError error) {
  switch (error) {
    case ParseError::kNone:
      return "none";
    case ParseError::kTruncated:
      return "truncated";
    case ParseError::kBadIpVersion:
      return "bad IP version";
    case ParseError::kBadIpHeader:
      return "bad IP header";
    case ParseError::kFragment:
      return "fragment";
    case ParseError::kNotUdp:
      return "not UDP";
    case ParseError::kNotRoce:
      return "not RoCE";
    case ParseError::kBadLength:
      return "bad length";
    case ParseError::kBadOpcode:
      return "bad opcode";
    case ParseError::kBadTver:
      return "bad transport version";
    case ParseError::kBadPad:
      return "bad pad";
    case ParseError::kBadPayload:
      return "bad payload";
  }
  return "?";
}

ParseError parse(std::span<const uint8_t> packet, Parsed& out) {
  size_t behind = 0;
  ParseError error = parse_all(packet, out, behind);
  if (error != ParseError::kNone) return error;
  if (!out.headers.is_ipv6 && !checksum_right(packet.data())) return ParseError::kBadIpHeader;
  const Headers& headers = out.headers;
  size_t whole = headers.is_ipv6 ? kIpv6Len + headers.v6.payload_length : headers.v4.total_length;
  if (packet.size() < whole) return ParseError::kTruncated;
  out.has_icrc = true;
  return check_payload(out, behind);
}

ParseError parse_headers(std::span<const uint8_t> bytes, size_t payload_len, Parsed& out) {
  size_t behind = 0;
  ParseError error = parse_all(bytes, out, behind);
  if (error == ParseError::kNone) error = check_payload(out, behind);
  if (error != ParseError::kNone) return error;
  out.has_icrc = false;
  bool agrees = out.header_len == bytes.size() && out.payload_len == payload_len;
  return agrees ? ParseError::kNone : ParseError::kBadLength;
}

void finish_lengths(Headers& headers, size_t payload_len) {
  headers.bth.pad_count = static_cast<uint8_t>(pad_of(payload_len));
  size_t udp = udp_length(opcode_info(headers.bth.opcode), payload_len);
  headers.udp.length = static_cast<uint16_t>(udp);
  headers.udp.checksum = 0;
  if (headers.is_ipv6) {
    headers.v6.payload_length = static_cast<uint16_t>(udp);
    return;
  }
  headers.v4.total_length = static_cast<uint16_t>(kIpv4Len + udp);
  headers.v4.checksum = 0;
  std::array<uint8_t, kIpv4Len> bytes;
  emit_ipv4(headers.v4, bytes.data());
  headers.v4.checksum = checksum(bytes.data());
}

void set_ipv4_checksum(std::span<uint8_t> header) {
  assert(header.size() >= kIpv4Len);
  store16(header.data() + 10, 0);
  store16(header.data() + 10, checksum(header.data()));
}

size_t emit(const Headers& headers, std::span<uint8_t> out) {
  assert(out.size() >= kMaxHeaderLen);
  uint8_t* at = out.data();
  at = headers.is_ipv6 ? emit_ipv6(headers.v6, at) : emit_ipv4(headers.v4, at);
  store16(at, headers.udp.src_port);
  store16(at + 2, headers.udp.dst_port);
  store16(at + 4, headers.udp.length);
  store16(at + 6, headers.udp.checksum);
  at = emit_bth(headers.bth, at + kUdpLen);
  at = emit_extensions(headers, opcode_info(headers.bth.opcode), at);
  return static_cast<size_t>(at - out.data());
}

HeaderTemplate::HeaderTemplate(const Headers& headers) {
  Headers blank = headers;
  blank.bth.opcode = Opcode::kRcSendOnly;  // without extension headers
  blank.v4.total_length = blank.v4.checksum = 0;
  blank.udp.checksum = 0;
  std::array<uint8_t, kMaxHeaderLen> bytes{};  // IPv4 headers end before the template does
  wire::emit(blank, bytes);
  std::copy_n(bytes.begin(), bytes_.size(), bytes_.begin());
  ip_len_ = headers.is_ipv6 ? kIpv6Len : kIpv4Len;
  if (headers.is_ipv6) return;
  for (size_t i = 0; i < kIpv4Len; i += 2) ip_sum_ += load16(bytes.data() + i);
}

bool HeaderTemplate::answered_by(const uint8_t* headers) const {
  const uint8_t* own = bytes_.data();
  auto same = [&](size_t one, size_t other, size_t length) {
    return std::memcmp(headers + one, own + other, length) == 0;
  };
  if (headers[0] >> 4 != own[0] >> 4) return false;
  return ip_len_ == kIpv4Len ? same(12, 16, 4) && same(16, 12, 4)
                             : same(8, 24, 16) && same(24, 8, 16);
}

size_t HeaderTemplate::emit(const Fields& fields, const Extensions& extensions, size_t payload_len,
                            std::span<uint8_t> out) const {
  assert(out.size() >= kMaxHeaderLen);
  const OpcodeInfo& info = opcode_info(fields.opcode);
  size_t udp_len = udp_length(info, payload_len);
  uint8_t* ip = out.data();
  std::memcpy(ip, bytes_.data(), bytes_.size());
  if (ip_len_ == kIpv4Len) {
    auto total = static_cast<uint16_t>(kIpv4Len + udp_len + fields.option_len);
    ip[1] |= fields.ecn;
    store16(ip + 2, total);
    store16(ip + 10, folded(ip_sum_ + total + fields.ecn));
  } else {
    ip[1] |= static_cast<uint8_t>(fields.ecn << 4);
    store16(ip + 4, static_cast<uint16_t>(udp_len + fields.option_len));
  }
  uint8_t* udp = ip + ip_len_;
  store16(udp + 4, static_cast<uint16_t>(udp_len));
  if (fields.port_offset) {
    store16(udp, static_cast<uint16_t>((load16(udp) + fields.port_offset) | kFirstSourcePort));
  }
  uint8_t* bth = udp + kUdpLen;
  bth[0] = static_cast<uint8_t>(fields.opcode);
  bth[4] = static_cast<uint8_t>(bth[4] | (fields.sr_capable ? kSrCapable : 0));
  bth[1] = static_cast<uint8_t>((bth[1] & 0x4f) | fields.solicited << 7 | pad_of(payload_len) << 4);
  store32(bth + 8, static_cast<uint32_t>(fields.ack_req) << 31 |
                       uint32_t{fields.reserved7 & 0x7fu} << 24 | (fields.psn & 0xffffff));
  uint8_t* end = emit_extensions(extensions, info, bth + kBthLen);
  return static_cast<size_t>(end - out.data());
}

}  // namespace rocefs::wire