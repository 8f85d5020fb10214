// Cost of a packet in rdma/wire: checksum, parsing, emitting.
#include <fmt/format.h>

#include <array>
#include <cstring>

#include "rdma/wire/icrc.h"
#include "rdma/wire/packet.h"
#include "test/bench/bench.h"
#include "test/bench/benches.h"
#include "test/bench/net.h"

namespace rocefs::bench {
namespace {

wire::Headers write_only() {
  wire::Headers headers;
  headers.v4.src = {10, 77, 0, 1};
  headers.v4.dst = {10, 77, 0, 2};
  headers.v4.ttl = 64;
  headers.v4.protocol = 17;
  headers.udp.src_port = 0xc000;
  headers.udp.dst_port = wire::kRocePort;
  headers.bth.opcode = wire::Opcode::kRcWriteOnly;
  headers.bth.pkey = 0xffff;
  headers.bth.dest_qpn = 17;
  headers.reth = {0x1000, 7, 4096};
  wire::finish_lengths(headers, 4096);
  return headers;
}

}  // namespace

void bench_wire(Table& table) {
  constexpr int kTurns = 20'000;
  wire::Headers headers = write_only();
  std::array<uint8_t, wire::kMaxHeaderLen> header{};
  std::array<uint8_t, 4096> payload{}, copy{};
  for (size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<uint8_t>(i * 7);
  size_t header_len = wire::emit(headers, header);
  std::span<const uint8_t> bytes(header.data(), header_len);
  volatile uint64_t seen = 0;
  auto per_turn = [&](auto work) {
    return [&seen, work] {
      return cpu_ns([&] {
               for (int i = 0; i < kTurns; ++i) seen = seen + work();
             }) /
             kTurns;
    };
  };
  Rounds ns = interleave(
      31, {per_turn([&] { return uint64_t{wire::icrc(bytes, false, payload, {})}; }), per_turn([&] {
             std::memcpy(copy.data(), payload.data(), copy.size());
             asm volatile("" : : "r"(copy.data()) : "memory");
             return uint64_t{copy[5]};
           }),
           per_turn([&] {
             wire::Parsed parsed;
             require(wire::parse_headers(bytes, 4096, parsed) == wire::ParseError::kNone,
                     "malformed");
             return uint64_t{parsed.headers.bth.psn};
           }),
           per_turn([&] {
             headers.bth.psn = (headers.bth.psn + 1) & 0xffffff;
             wire::finish_lengths(headers, 4096);
             return uint64_t{wire::emit(headers, header)};
           })});
  table.push_back({"ICRC of a 4 KiB packet", fmt::format("{:.0f} ns", ns[0]),
                   fmt::format("{:.0f} ns memcpy", ns[1]), fmt::format("{:.2f}", ns.ratio(0, 1)),
                   ""});
  table.push_back({"parsing a packet's headers", fmt::format("{:.0f} ns", ns[2]), "", "", ""});
  table.push_back({"emitting a packet's headers", fmt::format("{:.0f} ns", ns[3]), "", "", ""});
}

}  // namespace rocefs::bench
