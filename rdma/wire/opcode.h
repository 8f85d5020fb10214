// BTH opcodes and their properties; CNP is that of annex A17 (RoCEv2).
#pragma once

#include <algorithm>
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
  kRcAtomicWrite = 0x1d,
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
  // A request of RC that this engine does not have. What follows its BTH is unknown and counts as
  // payload; the responder refuses it in its turn.
  bool reserved = false;
  Service service = Service::kRc;
  bool request = false, response = false;  // a CNP is neither
  bool is_send = false, is_write = false, is_atomic = false, is_read_response = false;
  bool first = false, middle = false, last = false, only = false;
  bool has_deth = false, has_reth = false, has_atomic_eth = false;
  bool has_aeth = false, has_atomic_ack_eth = false, has_imm = false, has_ieth = false;
  bool has_cnp_reserved = false;
  bool has_payload = false;
  uint8_t header_len = 0;  // octets of extension headers behind the BTH
  std::string_view name;   // "RC_WRITE_FIRST"
};

// Construction of the table below; private.
namespace opcode_table {

enum Flag : uint32_t {
  kSend = 1 << 0,
  kWrite = 1 << 1,
  kReadResponse = 1 << 2,
  kFirst = 1 << 3,
  kMiddle = 1 << 4,
  kLast = 1 << 5,
  kOnly = 1 << 6,
  kDeth = 1 << 7,
  kReth = 1 << 8,
  kAtomicEth = 1 << 9,
  kAeth = 1 << 10,
  kAtomicAckEth = 1 << 11,
  kImm = 1 << 12,
  kIeth = 1 << 13,
  kCnpReserved = 1 << 14,
  kPayload = 1 << 15,
  kAtomic = 1 << 16,
};

struct Row {
  Opcode opcode;
  Service service;
  uint32_t flags;
  std::string_view name;
};

inline constexpr Row kRows[] = {
    {Opcode::kRcSendFirst, Service::kRc, kSend | kFirst | kPayload, "RC_SEND_FIRST"},
    {Opcode::kRcSendMiddle, Service::kRc, kSend | kMiddle | kPayload, "RC_SEND_MIDDLE"},
    {Opcode::kRcSendLast, Service::kRc, kSend | kLast | kPayload, "RC_SEND_LAST"},
    {Opcode::kRcSendLastImm, Service::kRc, kSend | kLast | kImm | kPayload, "RC_SEND_LAST_IMM"},
    {Opcode::kRcSendOnly, Service::kRc, kSend | kOnly | kPayload, "RC_SEND_ONLY"},
    {Opcode::kRcSendOnlyImm, Service::kRc, kSend | kOnly | kImm | kPayload, "RC_SEND_ONLY_IMM"},
    {Opcode::kRcWriteFirst, Service::kRc, kWrite | kFirst | kReth | kPayload, "RC_WRITE_FIRST"},
    {Opcode::kRcWriteMiddle, Service::kRc, kWrite | kMiddle | kPayload, "RC_WRITE_MIDDLE"},
    {Opcode::kRcWriteLast, Service::kRc, kWrite | kLast | kPayload, "RC_WRITE_LAST"},
    {Opcode::kRcWriteLastImm, Service::kRc, kWrite | kLast | kImm | kPayload, "RC_WRITE_LAST_IMM"},
    {Opcode::kRcWriteOnly, Service::kRc, kWrite | kOnly | kReth | kPayload, "RC_WRITE_ONLY"},
    {Opcode::kRcWriteOnlyImm, Service::kRc, kWrite | kOnly | kReth | kImm | kPayload,
     "RC_WRITE_ONLY_IMM"},
    {Opcode::kRcReadRequest, Service::kRc, kReth, "RC_READ_REQUEST"},
    {Opcode::kRcReadResponseFirst, Service::kRc, kReadResponse | kFirst | kAeth | kPayload,
     "RC_READ_RESPONSE_FIRST"},
    {Opcode::kRcReadResponseMiddle, Service::kRc, kReadResponse | kMiddle | kPayload,
     "RC_READ_RESPONSE_MIDDLE"},
    {Opcode::kRcReadResponseLast, Service::kRc, kReadResponse | kLast | kAeth | kPayload,
     "RC_READ_RESPONSE_LAST"},
    {Opcode::kRcReadResponseOnly, Service::kRc, kReadResponse | kOnly | kAeth | kPayload,
     "RC_READ_RESPONSE_ONLY"},
    {Opcode::kRcAck, Service::kRc, kAeth, "RC_ACKNOWLEDGE"},
    {Opcode::kRcAtomicAck, Service::kRc, kAeth | kAtomicAckEth, "RC_ATOMIC_ACKNOWLEDGE"},
    {Opcode::kRcCmpSwap, Service::kRc, kAtomic | kAtomicEth, "RC_COMPARE_SWAP"},
    {Opcode::kRcFetchAdd, Service::kRc, kAtomic | kAtomicEth, "RC_FETCH_ADD"},
    {Opcode::kRcSendLastInv, Service::kRc, kSend | kLast | kIeth | kPayload, "RC_SEND_LAST_INV"},
    {Opcode::kRcSendOnlyInv, Service::kRc, kSend | kOnly | kIeth | kPayload, "RC_SEND_ONLY_INV"},
    {Opcode::kRcAtomicWrite, Service::kRc, kAtomic | kOnly | kReth | kPayload, "RC_ATOMIC_WRITE"},
    {Opcode::kUcSendFirst, Service::kUc, kSend | kFirst | kPayload, "UC_SEND_FIRST"},
    {Opcode::kUcSendMiddle, Service::kUc, kSend | kMiddle | kPayload, "UC_SEND_MIDDLE"},
    {Opcode::kUcSendLast, Service::kUc, kSend | kLast | kPayload, "UC_SEND_LAST"},
    {Opcode::kUcSendLastImm, Service::kUc, kSend | kLast | kImm | kPayload, "UC_SEND_LAST_IMM"},
    {Opcode::kUcSendOnly, Service::kUc, kSend | kOnly | kPayload, "UC_SEND_ONLY"},
    {Opcode::kUcSendOnlyImm, Service::kUc, kSend | kOnly | kImm | kPayload, "UC_SEND_ONLY_IMM"},
    {Opcode::kUcWriteFirst, Service::kUc, kWrite | kFirst | kReth | kPayload, "UC_WRITE_FIRST"},
    {Opcode::kUcWriteMiddle, Service::kUc, kWrite | kMiddle | kPayload, "UC_WRITE_MIDDLE"},
    {Opcode::kUcWriteLast, Service::kUc, kWrite | kLast | kPayload, "UC_WRITE_LAST"},
    {Opcode::kUcWriteLastImm, Service::kUc, kWrite | kLast | kImm | kPayload, "UC_WRITE_LAST_IMM"},
    {Opcode::kUcWriteOnly, Service::kUc, kWrite | kOnly | kReth | kPayload, "UC_WRITE_ONLY"},
    {Opcode::kUcWriteOnlyImm, Service::kUc, kWrite | kOnly | kReth | kImm | kPayload,
     "UC_WRITE_ONLY_IMM"},
    {Opcode::kUdSendOnly, Service::kUd, kSend | kOnly | kDeth | kPayload, "UD_SEND_ONLY"},
    {Opcode::kUdSendOnlyImm, Service::kUd, kSend | kOnly | kDeth | kImm | kPayload,
     "UD_SEND_ONLY_IMM"},
    {Opcode::kCnp, Service::kCnp, kCnpReserved, "CNP"},
};

constexpr OpcodeInfo info_of(const Row& row) {
  auto has = [&](uint32_t flag) { return (row.flags & flag) != 0; };
  OpcodeInfo info;
  info.valid = true;
  info.service = row.service;
  info.response = has(kReadResponse) || has(kAeth);
  info.request = !info.response && row.service != Service::kCnp;
  info.is_send = has(kSend);
  info.is_write = has(kWrite);
  info.is_atomic = has(kAtomic);
  info.is_read_response = has(kReadResponse);
  info.first = has(kFirst);
  info.middle = has(kMiddle);
  info.last = has(kLast);
  info.only = has(kOnly);
  info.has_deth = has(kDeth);
  info.has_reth = has(kReth);
  info.has_atomic_eth = has(kAtomicEth);
  info.has_aeth = has(kAeth);
  info.has_atomic_ack_eth = has(kAtomicAckEth);
  info.has_imm = has(kImm);
  info.has_ieth = has(kIeth);
  info.has_cnp_reserved = has(kCnpReserved);
  info.has_payload = has(kPayload);
  info.header_len = static_cast<uint8_t>(8 * has(kDeth) + 16 * has(kReth) + 28 * has(kAtomicEth) +
                                         4 * has(kAeth) + 8 * has(kAtomicAckEth) + 4 * has(kImm) +
                                         4 * has(kIeth) + 16 * has(kCnpReserved));
  info.name = row.name;
  return info;
}

constexpr OpcodeInfo reserved_request() {
  OpcodeInfo info;
  info.reserved = info.request = info.has_payload = true;
  info.name = "RC_RESERVED";
  return info;
}

constexpr std::array<OpcodeInfo, 256> make_table() {
  constexpr size_t kRcOpcodes = 0x20;
  std::array<OpcodeInfo, 256> table{};
  std::fill_n(table.begin(), kRcOpcodes, reserved_request());
  for (const Row& row : kRows) table[static_cast<uint8_t>(row.opcode)] = info_of(row);
  return table;
}

}  // namespace opcode_table

inline constexpr std::array<OpcodeInfo, 256> kOpcodeTable = opcode_table::make_table();

// Properties of an opcode; `valid` is false for those that this engine does not have.
constexpr const OpcodeInfo& opcode_info(uint8_t opcode) {
  return kOpcodeTable[opcode];
}
constexpr const OpcodeInfo& opcode_info(Opcode opcode) {
  return kOpcodeTable[static_cast<uint8_t>(opcode)];
}

}  // namespace rocefs::wire
