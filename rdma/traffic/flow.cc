#include "rdma/traffic/flow.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/hash.h"
#include "rdma/network/fabric.h"
#include "rdma/nic/device.h"

namespace rocefs {

namespace {

bool ends_apart(Fabric& fabric, const FlowSpec& spec) {
  const Port *from = fabric.port(spec.from), *to = fabric.port(spec.to);
  if (!from || !to) return false;  // refused when it starts
  return fabric.in_regions() || &from->host().fabric() != &to->host().fabric();
}

}  // namespace

Flow::Flow(Fabric& fabric, const FlowSpec& spec, const QpOwner& owner,
           std::shared_ptr<FlowStats> stats, std::shared_ptr<LocalMemory> input, Ended ended)
    : ActiveFlow({fabric, spec, owner, std::move(stats), std::move(input), fabric.seed(),
                  std::move(ended)},
                 ends_apart(fabric, spec)),
      near_(FlowEndpoint::Side::kNear, parts(), *this),
      far_(FlowEndpoint::Side::kFar, parts(), *this) {}

Result<void> Flow::start() {
  Result<void> opened = open();
  for (uint32_t i = 0; opened && i < spec().qps; ++i) opened = connect(i);
  if (!opened) {
    close();
    return opened;
  }
  near_.listen();
  far_.listen();
  if (on_arrival_) far_.hear_arrivals(*this);
  begin();
  (reads() ? far_ : near_).publish();
  for (uint32_t i = 0; i < spec().qps; ++i) {
    far_.post_receives(i, 0);
    near_.post_more(i);
  }
  return {};
}

Result<void> Flow::open() {
  std::optional<uint64_t> file;
  if (parts().input) file = parts().input->bytes().size();
  Result<FlowPlan> plan = FlowPlan::of(spec(), file);
  if (!plan) return plan.error();
  for (const std::string& name : {spec().from, spec().to}) {
    if (!parts().fabric.port(name)) return errorf(EINVAL, "no device {}", name);
  }
  if (Result<void> can = check_apart(); !can) return can;
  near_.set_plan(*plan);
  far_.set_plan(*plan);
  Result<void> opened = near_.open(spec().from);
  if (opened) opened = near_.register_memory();
  if (opened) opened = far_.open(spec().to);
  return opened ? far_.register_memory() : opened;
}

// The far end of a flow whose ends are apart may do nothing by itself.
Result<void> Flow::check_apart() {
  if (!apart()) return {};
  Fabric& fabric = parts().fabric;
  const FlowOp op = spec().op;
  if (fabric.in_regions()) {
    if (op == FlowOp::kWrite || op == FlowOp::kRead) return {};
    return errorf(EOPNOTSUPP, "op={}: flows in regions write or read", flow_op_info(op).name);
  }
  if (fabric.way(*fabric.port(spec().from), *fabric.port(spec().to)).empty()) {
    return errorf(EHOSTUNREACH, "no cables lead from {} to {}", spec().from, spec().to);
  }
  if (!sends_messages(op)) return {};
  return errorf(EOPNOTSUPP,
                "op={}: {} and {} are on different packet cores, where flows do without receive "
                "requests",
                flow_op_info(op).name, spec().from, spec().to);
}

Result<void> Flow::connect(uint32_t pair) {
  // Initial PSNs as a connection manager would draw them; the same in every run of a seed.
  uint64_t draw = mix64(parts().fabric.seed() ^ fnv1a64(spec().name) ^ pair);
  Result<void> done = near_.add_qp(draw & 0xffffff);
  if (done) done = far_.add_qp((draw >> 24) & 0xffffff);
  if (done && pair == 0) done = agree();
  if (done) done = far_.bring_up(pair, near_.qp(pair));
  return done ? near_.bring_up(pair, far_.qp(pair)) : done;
}

Result<void> check_flow_ports(const FlowSpec& spec, const Port& from, const Port& to) {
  if (spec.gid >= gids_of(from.spec()).size() || spec.gid >= gids_of(to.spec()).size()) {
    return errorf(EINVAL, "gid={} is empty at an end", spec.gid);
  }
  uint32_t most = std::min(from.mtu(), to.mtu());
  if (spec.mtu > most) return errorf(EINVAL, "mtu={}: the ports have {}", spec.mtu, most);
  uint32_t mtu = spec.mtu ? spec.mtu : most;
  if (spec.op == FlowOp::kUd && spec.size > mtu) {
    return errorf(EINVAL, "size={}: a datagram holds at most the MTU, {} bytes", spec.size, mtu);
  }
  return {};
}

// The path between both ends, and its MTU.
Result<void> Flow::agree() {
  std::vector<Ip> near_gids = gids_of(near_.port().spec());
  std::vector<Ip> far_gids = gids_of(far_.port().spec());
  Result<void> fits = check_flow_ports(spec(), near_.port(), far_.port());
  if (!fits) return fits;
  uint32_t mtu = spec().mtu ? spec().mtu : std::min(near_.port().mtu(), far_.port().mtu());
  AddressVector there, back;
  there.local = back.remote = near_gids[spec().gid];
  there.remote = back.local = far_gids[spec().gid];
  near_.set_peer({far_.address(), far_.key(), there, mtu});
  far_.set_peer({near_.address(), near_.key(), back, mtu});
  return {};
}

void Flow::before_post(uint32_t pair, uint64_t position) {
  if (source().makes_up()) source().stamp(pair, position);
}

// In the part of the far end.
void Flow::message_arrived() {
  if (++arrived_ != near_.plan().count) return;
  if (apart()) return std::exchange(on_arrival_, nullptr)();
  poll_after(0);
}

void Flow::on_completions(TimeNs now) {
  if (!apart() && on_arrival_ && arrived_ == near_.plan().count)
    std::exchange(on_arrival_, nullptr)();
  std::array<Completion, 32> batch;
  while (size_t taken = far_.poll_receives(batch)) {
    for (size_t i = 0; i < taken; ++i) {
      if (batch[i].status != WcStatus::kSuccess) break;  // the near end's completion has the reason
      if (is_unreliable(spec().op)) take_datagram(batch[i]);
    }
  }
  if (Result<void> taken = near_.take_sends(); !taken) return end(now, taken.error());
  if (stats().messages.get() != near_.plan().count) return;
  if (spec().op == FlowOp::kAtomic && !atomics_are_right()) stats().mismatched.add();
  end(now, {});
}

// Each addition happened once: they found 0, 1, … count - 1, and left count.
bool Flow::atomics_are_right() const {
  return far_.sum_is_right() && near_.originals_are_right();
}

// A message that arrives on an unreliable service must be intact; others were lost.
void Flow::take_datagram(const Completion& completion) {
  auto pair = static_cast<uint32_t>(completion.wr_id);
  FlowPlan::Slot at = far_.plan().receive_slot(pair, far_.received(pair));
  uint32_t skip = spec().op == FlowOp::kUd ? kGrhLen : 0;
  bool intact = completion.byte_len == spec().size + skip;
  if (intact && spec().verify) {
    intact = far_.pattern().stamped(far_.bytes_at(at).subspan(skip), completion.immediate);
  }
  far_.take_receive(pair, completion.byte_len - skip, intact);
  far_.post_receives(pair, far_.received(pair));
}

// No work request of a reliable service completes before its last byte is placed: at this moment
// the message is the same at both ends.
void Flow::after_send(uint32_t pair, uint64_t position) {
  uint32_t length = near_.plan().slot(pair, position).length;
  bool compared = spec().verify && !is_unreliable(spec().op) && spec().op != FlowOp::kAtomic;
  if (compared && length > 0) {
    const uint8_t* near = near_.message(pair, position).data();
    const uint8_t* far = far_.message(pair, position).data();
    if (std::memcmp(near, far, length) != 0) stats().mismatched.add();
  }
  if (apart()) return;  // close() accounts for the far end; it has no receive requests
  far_.account(pair);
  far_.post_receives(pair, is_unreliable(spec().op) ? far_.received(pair) : near_.completed(pair));
}

// Queue pairs in the order in which they were made, for the order in which their numbers are used
// again.
void Flow::close() {
  for (uint32_t i = 0; i < near_.qp_count(); ++i) {
    near_.destroy_qp(i);
    far_.destroy_qp(i);
  }
  near_.close();
  far_.close();
}

}  // namespace rocefs
