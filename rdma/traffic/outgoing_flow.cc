#include "rdma/traffic/outgoing_flow.h"

#include <cerrno>

#include "rdma/traffic/remote_join.h"

namespace rocefs {

OutgoingFlow::OutgoingFlow(FlowParts parts, const AddressVector& path, std::optional<uint64_t> file)
    : ActiveFlow(std::move(parts)),
      path_(path),
      file_(file),
      end_(FlowEndpoint::Side::kNear, this->parts(), *this) {}

OutgoingFlow::~OutgoingFlow() {
  stop();
  discard(parts(), end_);
}

Result<void> OutgoingFlow::set_plan(std::optional<uint64_t> file) {
  Result<FlowPlan> plan = FlowPlan::of(spec(), file, FlowEnds::kTwoMounts);
  if (!plan) return plan.error();
  end_.set_plan(*plan);
  return {};
}

Result<EndpointInfo> OutgoingFlow::open() {
  Result<void> made = end_.open(spec().from);
  if (made) made = set_plan(reads_file() ? kMaxFlowMemory : file_);
  PsnDraw draw(parts());
  for (uint32_t i = 0; made && i < spec().qps; ++i) made = end_.add_qp(draw.psn(i));
  if (made && !reads_file()) made = end_.register_memory();
  if (made) return info_of(end_, spec(), file_.value_or(0));
  close();
  return made.error();
}

Result<void> OutgoingFlow::connect(const EndpointInfo& far) {
  if (!end_.is_open()) return Error{ENODEV, "device removed"};
  if (far.qps.size() != spec().qps) return Error{EINVAL, "another number of queue pairs"};
  if (reads_file()) {
    if (far.bytes > kMaxFlowMemory) {
      return errorf(EFBIG, "{} bytes, more than {}", far.bytes, kMaxFlowMemory);
    }
    Result<void> made = set_plan(far.bytes);
    if (made) made = end_.register_memory();
    if (!made) return made;
  }
  if (Result<void> joined = join(end_, spec(), path_, far); !joined) return joined;
  for (uint32_t i = 0; i < spec().qps; ++i) {
    if (Result<void> up = end_.bring_up(i, far.qps[i]); !up) return up;
  }
  end_.listen();
  begin();
  if (!reads()) end_.publish();
  for (uint32_t i = 0; i < spec().qps; ++i) end_.post_more(i);
  return {};
}

void OutgoingFlow::before_post(uint32_t pair, uint64_t position) {
  if (!end_.makes_up()) return;
  if (reads()) {
    FlowPattern::clear(end_.message(pair, position));
  } else {
    end_.stamp(pair, position);
  }
}

// The far end makes up one message for each place.
void OutgoingFlow::after_send(uint32_t pair, uint64_t position) {
  const FlowPlan& plan = end_.plan();
  uint64_t message = plan.message_index(pair, position % plan.depth);
  bool checked = reads() && end_.makes_up();
  if (checked && !end_.pattern().stamped(end_.message(pair, position), message)) {
    stats().mismatched.add();
  }
}

void OutgoingFlow::on_completions(TimeNs now) {
  if (Result<void> taken = end_.take_sends(); !taken) return end(now, taken.error());
  if (stats().messages.get() != end_.plan().count) return;
  if (spec().op == FlowOp::kAtomic && !end_.originals_are_right()) stats().mismatched.add();
  end(now, {});
}

void OutgoingFlow::conclude(const FlowReport& report) {
  if (is_unreliable(spec().op)) {
    stats().bytes.set(report.bytes);
    stats().received.set(report.received);
  }
  stats().mismatched.add(report.mismatched);
}

}  // namespace rocefs
