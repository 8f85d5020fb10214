// Worlds with congestion: knobs of congestion control by path, scripts that mark, endless flows.
#pragma once

#include <initializer_list>
#include <string_view>
#include <utility>

#include "rdma/packet/traffic_class.h"
#include "rdma/wire/psn.h"
#include "test/rdma/transport/pair.h"

namespace rocefs::test {

using Settings = std::initializer_list<std::pair<std::string_view, std::string_view>>;

// Initial values changed by `settings`, as if echoed.
template <size_t N>
std::vector<KnobValue> values_with(const KnobRow (&rows)[N], Settings settings) {
  std::vector<KnobValue> values = initial_values(rows);
  for (auto [path, text] : settings) {
    bool found = false;
    for (size_t i = 0; i < N; ++i) {
      if (rows[i].path != path) continue;
      Result<KnobValue> value = parse_knob(rows[i], text);
      REQUIRE(value);
      values[i] = *value;
      found = true;
    }
    REQUIRE(found);
  }
  return values;
}
inline void set_ecn(Port& port, Settings settings) {
  std::vector<KnobValue> values = values_with(kEcnKnobs, settings);
  REQUIRE(port.ecn().check(values));
  port.ecn().apply(values);
}
inline void set_cfr(Device& device, Settings settings) {
  std::vector<KnobValue> values = values_with(kCfrKnobs, settings);
  REQUIRE(device.cfr().check(values));
  device.cfr().apply(values);
}
inline void set_class(Port& port, std::string_view text) {
  std::vector<KnobValue> values{std::string(text)};
  REQUIRE(port.class_override().check(values));
  port.class_override().apply(values);
}
inline RpParameters rp_with(Settings settings) {
  EcnKnobs knobs;
  std::vector<KnobValue> values = values_with(kEcnKnobs, settings);
  REQUIRE(knobs.check(values));
  knobs.apply(values);
  return knobs.rp();
}

// Controller of a device's windows, by its register pages.
struct WindowTaker final : WindowController {
  int lost = 0;
  std::shared_ptr<SharedMemory> page;
  void windows_lost(Device&) override { ++lost; }
  Result<void> take(Device& device) {
    auto taken = device.take_windows(*this);
    if (!taken) return taken.error();
    page = *taken;
    return {};
  }
  rocefs_qp_control& line(uint32_t qpn) const {
    return page->at<rocefs_control_page>(0)->qps[qpn - ROCEFS_FIRST_QPN];
  }
  void set_window(Device& device, uint32_t qpn, uint32_t octets) const {
    uint64_t generation = device.registers().signals_of(qpn)->generation;
    line(qpn).window = generation << 32 | octets;
  }
};

// A flow that does not end by itself.
struct RunningFlow {
  std::shared_ptr<FlowStats> stats = std::make_shared<FlowStats>();
  Flow flow;
  std::string state = "running";
  static FlowSpec spec_of(const char* name, FlowOp op, const char* from, const char* to) {
    FlowSpec spec;
    spec.name = name;
    spec.op = op;
    spec.from = from;
    spec.to = to;
    spec.size = op == FlowOp::kUd ? 4096 : 256 * 1024;
    spec.count = 1u << 30;
    return spec;
  }
  RunningFlow(World& world, const FlowSpec& spec)
      : flow(world.fabric, spec, {}, stats, nullptr,
             [this](Result<void> result) { state = result ? "done" : result.error().reason; }) {
    REQUIRE(flow.start());
  }
  RunningFlow(World& world, FlowOp op)
      : RunningFlow(world, spec_of("stream", op, "mb_0", "mb_1")) {}
  uint64_t window() const { return stats->sender.window.get(); }
  uint64_t rate() const { return stats->sender.rate_bps.get(); }
};

inline bool is_data(const wire::Parsed& parsed) {
  const wire::OpcodeInfo& info = wire::opcode_info(parsed.headers.bth.opcode);
  return info.request || info.is_read_response;
}
inline bool is_cnp(const wire::Parsed& parsed) {
  return parsed.headers.bth.opcode == wire::Opcode::kCnp;
}
// Marks like a switch that ignores ECT.
inline void mark(Packet& packet) {
  mark_congested(packet);
}

// The first queue pair of a device in a world of one flow or connection, and a CNP for it.
constexpr uint32_t kFirstQp = 17;
inline void send_cnp(World& world, const char* to, const char* from, uint32_t qpn = kFirstQp) {
  CnpAddress address;
  address.from = gids_of(world.device(from).port().spec())[1];
  address.to = gids_of(world.device(to).port().spec())[1];
  address.dest_qpn = qpn;
  PacketPtr packet = make_cnp(world.fabric.pool(), address);
  world.device(to).port().receive(packet.release(), world.scheduler.now());
}

}  // namespace rocefs::test
