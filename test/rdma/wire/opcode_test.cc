#include "rdma/wire/opcode.h"

#include <catch2/catch.hpp>
#include <deque>
#include <string>
#include <vector>

using namespace rocefs;
using wire::Opcode;

// Asked when compiling: the table costs nothing to build.
static_assert(wire::opcode_info(Opcode::kRcCmpSwap).header_len == 28);
static_assert(!wire::opcode_info(uint8_t{0x15}).valid);

namespace {

// The tables of the standard, and annex A17 for CNP, written again in their own words: the opcode,
// the packet's place in its message, and what follows the BTH in the order in which it does.
struct Row {
  Opcode opcode;
  int code;
  std::string_view name;
  std::string_view place;
  std::string_view behind_bth;
};

constexpr Row kTables[] = {
    {Opcode::kRcSendFirst, 0x00, "RC_SEND_FIRST", "first", "payload"},
    {Opcode::kRcSendMiddle, 0x01, "RC_SEND_MIDDLE", "middle", "payload"},
    {Opcode::kRcSendLast, 0x02, "RC_SEND_LAST", "last", "payload"},
    {Opcode::kRcSendLastImm, 0x03, "RC_SEND_LAST_IMM", "last", "ImmDt payload"},
    {Opcode::kRcSendOnly, 0x04, "RC_SEND_ONLY", "only", "payload"},
    {Opcode::kRcSendOnlyImm, 0x05, "RC_SEND_ONLY_IMM", "only", "ImmDt payload"},
    {Opcode::kRcWriteFirst, 0x06, "RC_WRITE_FIRST", "first", "RETH payload"},
    {Opcode::kRcWriteMiddle, 0x07, "RC_WRITE_MIDDLE", "middle", "payload"},
    {Opcode::kRcWriteLast, 0x08, "RC_WRITE_LAST", "last", "payload"},
    {Opcode::kRcWriteLastImm, 0x09, "RC_WRITE_LAST_IMM", "last", "ImmDt payload"},
    {Opcode::kRcWriteOnly, 0x0a, "RC_WRITE_ONLY", "only", "RETH payload"},
    {Opcode::kRcWriteOnlyImm, 0x0b, "RC_WRITE_ONLY_IMM", "only", "RETH ImmDt payload"},
    {Opcode::kRcReadRequest, 0x0c, "RC_READ_REQUEST", "", "RETH"},
    {Opcode::kRcReadResponseFirst, 0x0d, "RC_READ_RESPONSE_FIRST", "first", "AETH payload"},
    {Opcode::kRcReadResponseMiddle, 0x0e, "RC_READ_RESPONSE_MIDDLE", "middle", "payload"},
    {Opcode::kRcReadResponseLast, 0x0f, "RC_READ_RESPONSE_LAST", "last", "AETH payload"},
    {Opcode::kRcReadResponseOnly, 0x10, "RC_READ_RESPONSE_ONLY", "only", "AETH payload"},
    {Opcode::kRcAck, 0x11, "RC_ACKNOWLEDGE", "", "AETH"},
    {Opcode::kRcAtomicAck, 0x12, "RC_ATOMIC_ACKNOWLEDGE", "", "AETH AtomicAckETH"},
    {Opcode::kRcCmpSwap, 0x13, "RC_COMPARE_SWAP", "", "AtomicETH"},
    {Opcode::kRcFetchAdd, 0x14, "RC_FETCH_ADD", "", "AtomicETH"},
    {Opcode::kRcSendLastInv, 0x16, "RC_SEND_LAST_INV", "last", "IETH payload"},
    {Opcode::kRcSendOnlyInv, 0x17, "RC_SEND_ONLY_INV", "only", "IETH payload"},
    {Opcode::kRcAtomicWrite, 0x1d, "RC_ATOMIC_WRITE", "only", "RETH payload"},
    {Opcode::kUcSendFirst, 0x20, "UC_SEND_FIRST", "first", "payload"},
    {Opcode::kUcSendMiddle, 0x21, "UC_SEND_MIDDLE", "middle", "payload"},
    {Opcode::kUcSendLast, 0x22, "UC_SEND_LAST", "last", "payload"},
    {Opcode::kUcSendLastImm, 0x23, "UC_SEND_LAST_IMM", "last", "ImmDt payload"},
    {Opcode::kUcSendOnly, 0x24, "UC_SEND_ONLY", "only", "payload"},
    {Opcode::kUcSendOnlyImm, 0x25, "UC_SEND_ONLY_IMM", "only", "ImmDt payload"},
    {Opcode::kUcWriteFirst, 0x26, "UC_WRITE_FIRST", "first", "RETH payload"},
    {Opcode::kUcWriteMiddle, 0x27, "UC_WRITE_MIDDLE", "middle", "payload"},
    {Opcode::kUcWriteLast, 0x28, "UC_WRITE_LAST", "last", "payload"},
    {Opcode::kUcWriteLastImm, 0x29, "UC_WRITE_LAST_IMM", "last", "ImmDt payload"},
    {Opcode::kUcWriteOnly, 0x2a, "UC_WRITE_ONLY", "only", "RETH payload"},
    {Opcode::kUcWriteOnlyImm, 0x2b, "UC_WRITE_ONLY_IMM", "only", "RETH ImmDt payload"},
    {Opcode::kUdSendOnly, 0x64, "UD_SEND_ONLY", "only", "DETH payload"},
    {Opcode::kUdSendOnlyImm, 0x65, "UD_SEND_ONLY_IMM", "only", "DETH ImmDt payload"},
    {Opcode::kCnp, 0x81, "CNP", "", "reserved"},
};

bool is_response(int code) {
  return (code & 0x1f) >= 0x0d && (code & 0x1f) <= 0x12;
}

// The same with the rows of XRC (annex A14): 101 in the upper bits of those of RC, and an XRCETH in
// front of what else follows the BTH of a request.
const std::vector<Row>& tables() {
  static std::deque<std::string> texts;
  static const std::vector<Row> all = [] {
    std::vector<Row> rows(std::begin(kTables), std::end(kTables));
    for (const Row& row : kTables) {
      if (row.code >= 0x20) continue;
      Row xrc = row;
      xrc.code += 0xa0;
      xrc.opcode = static_cast<Opcode>(xrc.code);
      xrc.name = texts.emplace_back("X" + std::string(row.name));
      const char* front = is_response(row.code) ? "" : "XRCETH ";
      xrc.behind_bth = texts.emplace_back(front + std::string(row.behind_bth));
      rows.push_back(xrc);
    }
    return rows;
  }();
  return all;
}

const Row* row_of(int code) {
  for (const Row& row : tables()) {
    if (row.code == code) return &row;
  }
  return nullptr;
}

wire::Service service_of(int code) {
  if (code == 0x81) return wire::Service::kCnp;
  constexpr wire::Service kByTopBits[] = {wire::Service::kRc, wire::Service::kUc,
                                          wire::Service::kRc, wire::Service::kUd,
                                          wire::Service::kRc, wire::Service::kXrc};
  return kByTopBits[code >> 5];
}

bool lists(const Row& row, std::string_view header) {
  return (" " + std::string(row.behind_bth) + " ").find(" " + std::string(header) + " ") !=
         std::string::npos;
}

}  // namespace

TEST_CASE("opcodes: each has the standard's name and place, and no other is valid") {
  for (int code = 0; code < 256; ++code) {
    const wire::OpcodeInfo& info = wire::opcode_info(static_cast<uint8_t>(code));
    const Row* row = row_of(code);
    INFO("opcode " << code);
    CHECK(info.valid == (row != nullptr));
    CHECK(info.reserved == (!row && code < 0x20));  // of RC, for its responder to refuse
    if (!row) continue;
    CHECK(static_cast<int>(row->opcode) == code);
    CHECK(&wire::opcode_info(row->opcode) == &info);
    CHECK(info.name == row->name);
    CHECK(info.service == service_of(code));
    CHECK(info.first == (row->place == "first"));
    CHECK(info.middle == (row->place == "middle"));
    CHECK(info.last == (row->place == "last"));
    CHECK(info.only == (row->place == "only"));
    bool response = is_response(code) && (code >> 5 == 0 || code >> 5 == 5);
    CHECK(info.response == response);
    CHECK(info.request == (!response && row->opcode != Opcode::kCnp));
    CHECK(info.is_read_response == (response && (code & 0x1f) <= 0x10));
    CHECK(info.is_send == (row->name.find("_SEND_") != std::string_view::npos));
    CHECK(info.is_write == (row->name.find("_WRITE_") != std::string_view::npos));
  }
}

TEST_CASE("opcodes: each has the headers of the standard") {
  for (const Row& row : tables()) {
    const wire::OpcodeInfo& info = wire::opcode_info(row.opcode);
    INFO(row.name);
    CHECK(info.has_xrceth == lists(row, "XRCETH"));
    CHECK(info.has_deth == lists(row, "DETH"));
    CHECK(info.has_reth == lists(row, "RETH"));
    CHECK(info.has_atomic_eth == lists(row, "AtomicETH"));
    CHECK(info.has_aeth == lists(row, "AETH"));
    CHECK(info.has_atomic_ack_eth == lists(row, "AtomicAckETH"));
    CHECK(info.has_imm == lists(row, "ImmDt"));
    CHECK(info.has_ieth == lists(row, "IETH"));
    CHECK(info.has_cnp_reserved == lists(row, "reserved"));
    CHECK(info.has_payload == lists(row, "payload"));
    constexpr std::pair<std::string_view, int> kLengths[] = {
        {"DETH", 8},  {"RETH", 16}, {"AtomicETH", 28}, {"AETH", 4},   {"AtomicAckETH", 8},
        {"ImmDt", 4}, {"IETH", 4},  {"reserved", 16},  {"XRCETH", 4},
    };
    int length = 0;
    for (auto [header, octets] : kLengths) length += lists(row, header) ? octets : 0;
    CHECK(info.header_len == length);
  }
}
