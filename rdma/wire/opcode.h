// BTH opcodes and their properties; CNP is that of annex A17 (RoCEv2).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

namespace rocefs::wire {

// Opcodes of reliable connections. RC and XRC have the same, but for the service in the upper three
// bits (IBTA 9.2.1, A14). ROW(Name, number, flags of opcode_table, text)
#define ROCEFS_RELIABLE_OPCODES(ROW)                                                             \
  ROW(SendFirst, 0x00, kSend | kFirst | kPayload, "SEND_FIRST")                                  \
  ROW(SendMiddle, 0x01, kSend | kMiddle | kPayload, "SEND_MIDDLE")                               \
  ROW(SendLast, 0x02, kSend | kLast | kPayload, "SEND_LAST")                                     \
  ROW(SendLastImm, 0x03, kSend | kLast | kImm | kPayload, "SEND_LAST_IMM")                       \
  ROW(SendOnly, 0x04, kSend | kOnly | kPayload, "SEND_ONLY")                                     \
  ROW(SendOnlyImm, 0x05, kSend | kOnly | kImm | kPayload, "SEND_ONLY_IMM")                       \
  ROW(WriteFirst, 0x06, kWrite | kFirst | kReth | kPayload, "WRITE_FIRST")                       \
  ROW(WriteMiddle, 0x07, kWrite | kMiddle | kPayload, "WRITE_MIDDLE")                            \
  ROW(WriteLast, 0x08, kWrite | kLast | kPayload, "WRITE_LAST")                                  \
  ROW(WriteLastImm, 0x09, kWrite | kLast | kImm | kPayload, "WRITE_LAST_IMM")                    \
  ROW(WriteOnly, 0x0a, kWrite | kOnly | kReth | kPayload, "WRITE_ONLY")                          \
  ROW(WriteOnlyImm, 0x0b, kWrite | kOnly | kReth | kImm | kPayload, "WRITE_ONLY_IMM")            \
  ROW(ReadRequest, 0x0c, kReth, "READ_REQUEST")                                                  \
  ROW(ReadResponseFirst, 0x0d, kReadResponse | kFirst | kAeth | kPayload, "READ_RESPONSE_FIRST") \
  ROW(ReadResponseMiddle, 0x0e, kReadResponse | kMiddle | kPayload, "READ_RESPONSE_MIDDLE")      \
  ROW(ReadResponseLast, 0x0f, kReadResponse | kLast | kAeth | kPayload, "READ_RESPONSE_LAST")    \
  ROW(ReadResponseOnly, 0x10, kReadResponse | kOnly | kAeth | kPayload, "READ_RESPONSE_ONLY")    \
  ROW(Ack, 0x11, kAeth, "ACKNOWLEDGE")                                                           \
  ROW(AtomicAck, 0x12, kAeth | kAtomicAckEth, "ATOMIC_ACKNOWLEDGE")                              \
  ROW(CmpSwap, 0x13, kAtomic | kAtomicEth, "COMPARE_SWAP")                                       \
  ROW(FetchAdd, 0x14, kAtomic | kAtomicEth, "FETCH_ADD")                                         \
  ROW(SendLastInv, 0x16, kSend | kLast | kIeth | kPayload, "SEND_LAST_INV")                      \
  ROW(SendOnlyInv, 0x17, kSend | kOnly | kIeth | kPayload, "SEND_ONLY_INV")                      \
  ROW(AtomicWrite, 0x1d, kAtomic | kOnly | kReth | kPayload, "ATOMIC_WRITE")

enum class Opcode : uint8_t {
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
#define ROCEFS_ROW(NAME, NUMBER, FLAGS, TEXT) kRc##NAME = NUMBER, kXrc##NAME = 0xa0 | NUMBER,
  ROCEFS_RELIABLE_OPCODES(ROCEFS_ROW)
#undef ROCEFS_ROW
};

enum class Service : uint8_t { kRc, kUc, kUd, kXrc, kCnp };

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
  bool has_xrceth = false;
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
#define ROCEFS_ROW(NAME, NUMBER, FLAGS, TEXT)           \
  {Opcode::kRc##NAME, Service::kRc, FLAGS, "RC_" TEXT}, \
      {Opcode::kXrc##NAME, Service::kXrc, FLAGS, "XRC_" TEXT},
    ROCEFS_RELIABLE_OPCODES(ROCEFS_ROW)
#undef ROCEFS_ROW
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
  info.has_xrceth = row.service == Service::kXrc && info.request;
  info.header_len =
      static_cast<uint8_t>(8 * has(kDeth) + 16 * has(kReth) + 28 * has(kAtomicEth) +
                           4 * has(kAeth) + 8 * has(kAtomicAckEth) + 4 * has(kImm) +
                           4 * has(kIeth) + 16 * has(kCnpReserved) + 4 * info.has_xrceth);
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
