// Operations of a send queue: the table of rdma/uapi/operations.h in the engine's types.
#pragma once

#include <array>
#include <cstdint>

#include "rdma/packet/verbs.h"
#include "rdma/uapi/operations.h"
#include "rdma/wire/opcode.h"

namespace rocefs {

// Opcode of a service with the operation of an opcode of RC. IBTA 9.2.1: the upper three bits are
// the service's, the lower five the operation's.
constexpr wire::Opcode opcode_of(QpType type, wire::Opcode of_rc) {
  constexpr uint8_t kServiceBits[] = {0x00, 0x20, 0x60, 0xa0, 0xa0};
  return static_cast<wire::Opcode>(static_cast<uint8_t>(of_rc) |
                                   kServiceBits[static_cast<size_t>(type)]);
}

struct SendOpInfo {
  using Packets = std::array<wire::Opcode, 4>;  // on RC: first, middle, last, only

  bool valid = false;
  uint16_t services = 0;  // of rocefs_services
  uint8_t traits = 0;     // of rocefs_operation_traits
  WcOpcode completion = WcOpcode::kSend;
  Packets packets{};

  constexpr bool has(uint8_t some) const { return traits & some; }
  bool is_of(QpType type) const {
    constexpr uint16_t kServices[] = {ROCEFS_RC, ROCEFS_UC, ROCEFS_UD, ROCEFS_XRC, 0};
    return services & kServices[static_cast<size_t>(type)];
  }
  wire::Opcode opcode(QpType type, bool first, bool last) const {
    return opcode_of(type, packets[first ? (last ? 3 : 0) : (last ? 2 : 1)]);
  }
};

// How the table below is made.
namespace send_op_table {

constexpr SendOpInfo::Packets only(wire::Opcode opcode) {
  return {opcode, opcode, opcode, opcode};
}

#define ROCEFS_NO_PACKETS SendOpInfo::Packets()
#define ROCEFS_ONE(OPCODE) only(wire::Opcode::kRc##OPCODE)
#define ROCEFS_MESSAGE(KIND, LAST, ONLY)                                                \
  SendOpInfo::Packets({wire::Opcode::kRc##KIND##First, wire::Opcode::kRc##KIND##Middle, \
                       wire::Opcode::kRc##KIND##LAST, wire::Opcode::kRc##KIND##ONLY})
#define ROCEFS_ROW(NAME, ABI, NUMBER, SERVICES, PACKETS, TRAITS, COMPLETION, BUILDER, CAPABILITY) \
  table[NUMBER] = {true, SERVICES, TRAITS, WcOpcode{ROCEFS_WC_##COMPLETION}, PACKETS};

// By the number of the operation; the rest is not valid.
constexpr std::array<SendOpInfo, 16> make() {
  std::array<SendOpInfo, 16> table{};
  ROCEFS_OPERATIONS(ROCEFS_ROW)
  return table;
}

#undef ROCEFS_ROW
#undef ROCEFS_MESSAGE
#undef ROCEFS_ONE
#undef ROCEFS_NO_PACKETS

}  // namespace send_op_table

inline constexpr std::array<SendOpInfo, 16> kSendOps = send_op_table::make();

// Valid for every SendOp.
constexpr const SendOpInfo& send_op_info(SendOp op) {
  return kSendOps[static_cast<size_t>(op)];
}

}  // namespace rocefs
