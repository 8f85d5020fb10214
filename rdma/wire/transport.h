// Transport: a view of a packet from its BTH on. For packets that were made here or have passed
// parse(): the only check is that no octet beyond the headers is read.
#pragma once

#include <cstdint>
#include <span>

#include "rdma/wire/bytes.h"
#include "rdma/wire/headers.h"
#include "rdma/wire/packet.h"

namespace rocefs::wire {

class Transport {
 public:
  // `headers` reach from the IP header to the last extension header, and outlive this view.
  Transport(std::span<const uint8_t> headers, uint16_t payload_len)
      : bth_(headers.data() + (headers[0] >> 4 == 6 ? kIpv6Len : kIpv4Len) + kUdpLen),
        end_(headers.data() + headers.size()),
        payload_len_(payload_len) {}

  // Whether the opcode is valid or reserved, and the headers are exactly those of the opcode.
  // Otherwise no other result is valid.
  bool well_formed() const {
    return (info().valid || info().reserved) && bth_ + kBthLen + info().header_len == end_;
  }

  Opcode opcode() const { return static_cast<Opcode>(bth_[0]); }
  // Opcode of RC with the same operation as one of XRC; others stay as they are.
  Opcode operation() const {
    return info().service == Service::kXrc ? static_cast<Opcode>(bth_[0] & 0x1f) : opcode();
  }
  const OpcodeInfo& info() const { return opcode_info(bth_[0]); }
  uint16_t payload_len() const { return payload_len_; }

  // Fields of the BTH, as in Bth.
  bool solicited() const { return bth_[1] & 0x80; }
  uint16_t pkey() const { return load16(bth_ + 2); }
  bool sr_capable() const { return bth_[4] & kSrCapable; }
  uint32_t dest_qpn() const { return load32(bth_ + 4) & 0xffffff; }
  bool ack_req() const { return bth_[8] & 0x80; }
  uint8_t reserved7() const { return bth_[8] & 0x7f; }
  uint32_t psn() const { return load32(bth_ + 8) & 0xffffff; }

  // Extension headers; only those of the opcode are valid.
  Xrceth xrc() const { return {bth_[kBthLen], load32(bth_ + kBthLen) & 0xffffff}; }
  Deth deth() const { return {load32(behind()), behind()[4], load32(behind() + 4) & 0xffffff}; }
  Reth reth() const { return {load64(behind()), load32(behind() + 8), load32(behind() + 12)}; }
  AtomicEth atomic() const {
    return {load64(behind()), load32(behind() + 8), load64(behind() + 12), load64(behind() + 20)};
  }
  Aeth aeth() const { return {behind()[0], load32(behind()) & 0xffffff}; }
  AtomicAckEth atomic_ack() const { return {load64(behind() + 4)}; }
  uint32_t imm() const { return load32(end_ - 4); }
  Ieth ieth() const { return {load32(end_ - 4)}; }

 private:
  // Behind an XRCETH, which is the first.
  const uint8_t* behind() const { return bth_ + kBthLen + kXrcethLen * info().has_xrceth; }

  const uint8_t* bth_;
  const uint8_t* end_;
  uint16_t payload_len_;
};

}  // namespace rocefs::wire
