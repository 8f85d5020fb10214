// BTH opcodes and what each says of its packet (IBTA 9.2, tables 35 and 38; annex A17 for CNP).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace rocefs::wire {

enum class Opcode : uint8_t {
  kRcSendFirst = 0x00,
  kRcSendMiddle = 0x01,
  kRcSendLast = 0x02,
  kRcSendLastImm = 0x03,
  kRcSendOnly = 0x04,
  kRcSendOnlyImm = 0x05,
  kRcWriteFirst = 0x06,
  kRcWriteMiddle = 0x07,
  kRcWriteLast = 0x08,
  kRcWriteLastImm = 0x09,
  kRcWriteOnly = 0x0a,
  kRcWriteOnlyImm = 0x0b,
  kRcReadRequest = 0x0c,
  kRcReadResponseFirst = 0x0d,
  kRcReadResponseMiddle = 0x0e,
  kRcReadResponseLast = 0x0f,
  kRcReadResponseOnly = 0x10,
  kRcAck = 0x11,
  kRcAtomicAck = 0x12,
  kRcCmpSwap = 0x13,
  kRcFetchAdd = 0x14,
  kRcSendLastInv = 0x16,
  kRcSendOnlyInv = 0x17,
  kUcSendFirst = 0x20,
  kUcSendMiddle = 0x21,
  kUcSendLast = 0x22,
  kUcSendLastImm = 0x23,
  kUcSendOnly = 0x24,
  kUcSendOnlyImm = 0x25,
  kUcWriteFirst = 0x26,
  kUcWriteMiddle = 0x27,
  kUcWriteLast = 0x28,
  kUcWriteLastImm = 0x29,
  kUcWriteOnly = 0x2a,
  kUcWriteOnlyImm = 0x2b,
  kUdSendOnly = 0x64,
  kUdSendOnlyImm = 0x65,
  kCnp = 0x81,
};

enum class Service : uint8_t { kRc, kUc, kUd, kCnp };

struct OpcodeInfo {
  bool valid = false;
  Service service = Service::kRc;
  bool is_send = false, is_write = false, is_read_response = false;
  bool first = false, middle = false, last = false, only = false;
  bool has_deth = false, has_reth = false, has_atomic_eth = false;
  bool has_aeth = false, has_atomic_ack_eth = false, has_imm = false, has_ieth = false;
  bool has_cnp_reserved = false;
  bool has_payload = false;
  uint8_t header_len = 0;  // octets of extension headers behind the BTH
  std::string_view name;   // "RC_WRITE_FIRST"
};

extern const std::array<OpcodeInfo, 256> kOpcodeTable;

// What stands in the table; `valid` is false for opcodes that nobody defines.
inline const OpcodeInfo& opcode_info(uint8_t opcode) {
  return kOpcodeTable[opcode];
}
inline const OpcodeInfo& opcode_info(Opcode opcode) {
  return kOpcodeTable[static_cast<uint8_t>(opcode)];
}

}  // namespace rocefs::wire
