#include "tools/rocefs/sim/ideal.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "rdma/nic/device.h"
#include "rdma/traffic/flow_plan.h"

namespace rocefs {

IdealTimes::IdealTimes(Fabric& fabric) : fabric_(fabric), ways_(fabric) {
  for (const auto& device : fabric.devices()) {
    const SpraySettings& settings = device->spraying();
    if (settings.on()) spraying_.emplace(device.get(), settings.range());
  }
}

std::optional<uint64_t> IdealTimes::rate_bps(std::string_view port) const {
  const Port* at = fabric_.port(port);
  if (!at || !at->cabled()) return std::nullopt;
  return ways_.rate_bps(at->egress());
}

namespace {

// Packets of a flow as cables carry them.
class Framing {
 public:
  Framing(const FlowSpec& flow, uint32_t mtu) : flow_(flow), mtu_(mtu) {}

  // A packet without payload.
  uint64_t octets(wire::Opcode opcode) const { return octets(opcode, 0); }
  // Sends a message of each of `pairs` queue pairs, which take turns packet by packet.
  void send_messages(PacketTrain& train, uint64_t size, uint64_t pairs) const {
    const uint64_t payload = wire::opcode_info(opcode_of_data(true, true)).has_payload ? size : 0;
    const uint64_t packets = std::max<uint64_t>(1, (payload + mtu_ - 1) / mtu_);
    const uint64_t rest = payload - (packets - 1) * mtu_;
    if (packets > 1) {
      train.send(octets(opcode_of_data(true, false), mtu_), pairs);
      train.send(octets(opcode_of_data(false, false), mtu_), (packets - 2) * pairs);
    }
    train.send(octets(opcode_of_data(packets == 1, true), rest), pairs);
  }

 private:
  uint64_t octets(wire::Opcode opcode, uint64_t payload) const {
    return kEthernetOverhead + (flow_.gid == 0 ? wire::kIpv6Len : wire::kIpv4Len) + wire::kUdpLen +
           wire::kBthLen + wire::opcode_info(opcode).header_len + (payload + 3) / 4 * 4 +
           wire::kIcrcLen;
  }
  wire::Opcode opcode_of_data(bool first, bool last) const {
    using enum wire::Opcode;
    const FlowOpInfo& info = flow_op_info(flow_.op);
    if (flow_.op != FlowOp::kRead)
      return send_op_info(info.request).opcode(info.service, first, last);
    if (first) return last ? kRcReadResponseOnly : kRcReadResponseFirst;
    return last ? kRcReadResponseLast : kRcReadResponseMiddle;
  }

  const FlowSpec& flow_;
  const uint64_t mtu_;
};

double one_packet_ns(const Way& way, uint64_t octets) {
  PacketTrain train(way);
  train.send(octets, 1);
  return train.arrived_ns();
}

Result<std::optional<uint64_t>> input_octets(const FlowSpec& flow) {
  if (flow.input.empty()) return std::optional<uint64_t>();
  struct stat status;
  if (::stat(flow.input.c_str(), &status) != 0) {
    return errorf(errno, "{}: {}", flow.input, std::strerror(errno));
  }
  return std::optional(static_cast<uint64_t>(status.st_size));
}

}  // namespace

Result<double> IdealTimes::fct_ns(const FlowSpec& flow) {
  Port* from = fabric_.port(flow.from);
  Port* to = fabric_.port(flow.to);
  const bool read = flow.op == FlowOp::kRead;
  Result<std::optional<uint64_t>> file = input_octets(flow);
  if (!file) return file.error();
  Result<FlowPlan> plan = FlowPlan::of(flow, *file);
  if (!plan) return plan.error();
  Way forth, back;
  if (from && to) {
    auto sprays = spraying_.find(&device_of(read ? *to : *from));
    const bool may_spray = sprays != spraying_.end() && flow.op != FlowOp::kUc;
    const uint64_t ports = may_spray ? sprays->second : 1;
    // A queue pair without a message has no packets.
    const uint64_t paths = std::min<uint64_t>(flow.qps, plan->count) * ports;
    forth = ways_.between(*from, *to, paths);
    back = ways_.between(*to, *from, paths);
  }
  if (forth.empty() || back.empty()) {
    return errorf(EINVAL, "no path leads from {} to {}", flow.from, flow.to);
  }
  const Framing framing(flow, flow.mtu ? flow.mtu : std::min(from->mtu(), to->mtu()));
  const uint64_t rest = *file ? **file - (plan->count - 1) * flow.size : flow.size;
  const bool atomic = flow.op == FlowOp::kAtomic;
  // So many messages in a row, in turn by the queue pairs, the last one of `last` octets.
  auto row_ns = [&](uint64_t messages, uint64_t pairs, uint64_t last) {
    const uint64_t whole = last == flow.size ? messages : messages - 1;
    PacketTrain train(read ? back : forth);
    train.repeat(whole / pairs, [&] { framing.send_messages(train, flow.size, pairs); });
    if (whole % pairs > 0) framing.send_messages(train, flow.size, whole % pairs);
    if (whole < messages) framing.send_messages(train, last, 1);
    using enum wire::Opcode;
    const double moved = train.arrived_ns();
    if (read) return one_packet_ns(forth, framing.octets(kRcReadRequest)) + moved;
    if (is_unreliable(flow.op)) return moved;
    return moved + one_packet_ns(back, framing.octets(atomic ? kRcAtomicAck : kRcAck));
  };
  const double all = row_ns(plan->count, flow.qps, rest);
  if (!read && !atomic) return all;
  // Each further READ or atomic of a queue pair waits for the response to an earlier one: so long
  // takes the first queue pair, alone.
  const uint64_t at_once = std::min<uint64_t>(plan->depth, QpAttributes{}.max_rd_atomic);
  const uint64_t messages = plan->messages_of(0);
  const uint64_t rounds = (messages - 1) / at_once;
  const uint64_t last = flow.qps == 1 ? rest : flow.size;
  const double waits = static_cast<double>(rounds) * row_ns(1, 1, flow.size);
  return std::max(all, waits + row_ns(messages - rounds * at_once, 1, last));
}

}  // namespace rocefs
