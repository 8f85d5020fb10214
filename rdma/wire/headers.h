// The headers of a RoCEv2 packet as fields: IPv4 or IPv6, UDP, BTH and the extension headers.
// Numbers are in host order.
#pragma once

#include <array>
#include <cstdint>

#include "rdma/wire/opcode.h"

namespace rocefs::wire {

inline constexpr uint16_t kDontFragment = 0x4000;  // in Ipv4::flags_fragment

struct Ipv4 {
  uint8_t tos = 0;  // DSCP and ECN
  uint16_t total_length = 0;
  uint16_t id = 0;
  uint16_t flags_fragment = 0;
  uint8_t ttl = 0;
  uint8_t protocol = 0;
  uint16_t checksum = 0;
  std::array<uint8_t, 4> src{}, dst{};

  bool operator==(const Ipv4&) const = default;
};

inline constexpr uint32_t kFlowLabelMask = 0xfffff;

struct Ipv6 {
  uint8_t traffic_class = 0;
  uint32_t flow_label = 0;  // 20 bits
  uint16_t payload_length = 0;
  uint8_t next_header = 0;
  uint8_t hop_limit = 0;
  std::array<uint8_t, 16> src{}, dst{};

  bool operator==(const Ipv6&) const = default;
};

struct Udp {
  uint16_t src_port = 0, dst_port = 0;
  uint16_t length = 0;
  uint16_t checksum = 0;

  bool operator==(const Udp&) const = default;
};

// Bit of Bth::reserved6: the sender can do selective retransmission.
inline constexpr uint8_t kSrCapable = 0x01;

struct Bth {
  Opcode opcode = Opcode::kRcSendOnly;
  bool solicited = false;
  bool mig_req = false;
  uint8_t pad_count = 0;  // 2 bits
  uint8_t tver = 0;       // 4 bits
  uint16_t pkey = 0;
  bool fecn = false, becn = false;
  uint8_t reserved6 = 0;  // 6 bits beside FECN and BECN, outside the ICRC; kSrCapable
  uint32_t dest_qpn = 0;  // 24 bits
  bool ack_req = false;
  uint8_t reserved7 = 0;  // 7 bits beside the A bit
  uint32_t psn = 0;       // 24 bits

  bool operator==(const Bth&) const = default;
};

struct Xrceth {
  uint8_t reserved = 0;
  uint32_t srqn = 0;  // 24 bits

  bool operator==(const Xrceth&) const = default;
};

struct Deth {
  uint32_t qkey = 0;
  uint8_t reserved = 0;
  uint32_t src_qpn = 0;  // 24 bits

  bool operator==(const Deth&) const = default;
};

struct Reth {
  uint64_t va = 0;
  uint32_t rkey = 0;
  uint32_t dma_len = 0;

  bool operator==(const Reth&) const = default;
};

struct AtomicEth {
  uint64_t va = 0;
  uint32_t rkey = 0;
  uint64_t swap_add = 0, compare = 0;

  bool operator==(const AtomicEth&) const = default;
};

struct Aeth {
  uint8_t syndrome = 0;
  uint32_t msn = 0;  // 24 bits

  bool operator==(const Aeth&) const = default;
};

struct AtomicAckEth {
  uint64_t original = 0;

  bool operator==(const AtomicAckEth&) const = default;
};

struct Ieth {
  uint32_t rkey = 0;

  bool operator==(const Ieth&) const = default;
};

// Extension headers. Only those of the packet's opcode are valid.
struct Extensions {
  Reth reth;
  Aeth aeth;
  Xrceth xrc;
  Deth deth;
  AtomicEth atomic;
  AtomicAckEth atomic_ack;
  uint32_t imm = 0;
  Ieth ieth;
  std::array<uint8_t, 16> cnp_reserved{};

  bool operator==(const Extensions&) const = default;
};

// Only the header of the packet's IP version is valid.
struct Headers : Extensions {
  bool is_ipv6 = false;
  Ipv4 v4;
  Ipv6 v6;
  Udp udp;
  Bth bth;

  bool operator==(const Headers&) const = default;
};

}  // namespace rocefs::wire
