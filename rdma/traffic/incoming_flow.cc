#include "rdma/traffic/incoming_flow.h"

#include <algorithm>
#include <array>
#include <cerrno>

namespace rocefs {
namespace {

constexpr TimeNs kLastOnes = 20 * kMillisecond;  // for datagrams that are on their way still
constexpr TimeNs kIdleLook = IncomingFlow::kIdle / 8;

}  // namespace

IncomingFlow::IncomingFlow(FlowParts parts, const AddressVector& path, std::optional<uint64_t> file)
    : ActiveFlow(std::move(parts)),
      path_(path),
      file_(file),
      end_(FlowEndpoint::Side::kFar, this->parts(), *this),
      prepare_(event_of<&IncomingFlow::on_prepare>(this)),
      finish_(event_of<&IncomingFlow::on_finish>(this)),
      idle_(event_of<&IncomingFlow::on_idle>(this)) {}

IncomingFlow::~IncomingFlow() {
  stop();
  discard(parts(), end_);
}

Result<void> IncomingFlow::serve(EndpointInfo near, Ready ready) {
  near_ = std::move(near);
  if (near_.qps.size() != spec().qps) return Error{EINVAL, "another number of queue pairs"};
  draw_.emplace(parts());
  Result<void> made = end_.open(spec().from);
  Result<FlowPlan> plan = FlowPlan::of(spec(), file_, FlowEnds::kTwoMounts);
  if (made && !plan) made = plan.error();
  if (plan) end_.set_plan(*plan);
  if (made) made = join(end_, spec(), path_, near_);
  bool made_up = reads() && !parts().input && spec().verify;
  using Contents = FlowEndpoint::Contents;
  if (made) made = end_.register_memory(made_up ? Contents::kMadeUp : Contents::kKept);
  if (made) {
    ready_ = std::move(ready);
    scheduler().after(prepare_, 0);
  } else {
    close();
  }
  return made;
}

// Makes the next queue pairs, until the near end may begin.
void IncomingFlow::on_prepare(TimeNs now) {
  Result<void> made = prepare_some();
  if (made && end_.qp_count() < spec().qps) return scheduler().after(prepare_, kPieceTime);
  Ready ready = std::exchange(ready_, nullptr);
  if (!made) {
    close();
    return ready(made.error());
  }
  end_.listen();
  progressed_ns_ = now;
  scheduler().after(idle_, kIdleLook);
  begin();
  if (reads()) end_.publish();
  ready(info_of(end_, spec(), file_.value_or(0)));
}

Result<void> IncomingFlow::prepare_some() {
  for (uint32_t left = kQpsAtOnce; left > 0 && end_.qp_count() < spec().qps; --left) {
    uint32_t pair = end_.qp_count();
    Result<void> made = end_.add_qp(draw_->psn(pair));
    if (made) made = end_.bring_up(pair, near_.qps[pair]);
    if (!made) return made;
    end_.post_receives(pair, 0);
  }
  return {};
}

void IncomingFlow::on_completions(TimeNs) {
  std::array<Completion, 32> batch;
  while (size_t taken = end_.poll_receives(batch)) {
    for (size_t i = 0; i < taken;
         ++i) {  // of a failed one the near end's completion has the reason
      if (batch[i].status == WcStatus::kSuccess) arrived_.push_back(batch[i]);
    }
  }
  uint64_t budget = kPiece;
  if (check_arrived(budget)) poll_after(kPieceTime);
}

// Checks the next piece of a message. Whether more of it is left.
bool IncomingFlow::check_piece(std::span<const uint8_t> bytes, uint64_t message, uint64_t& budget) {
  std::span<const uint8_t> rest = bytes.subspan(std::min(check_.offset, bytes.size()));
  std::span<const uint8_t> piece = rest.first(std::min<uint64_t>(rest.size(), budget));
  check_.intact &= end_.pattern().stamped(piece, message, check_.offset);
  check_.offset += piece.size();
  budget -= std::min(budget, piece.size() + FlowPattern::kEvery);
  return piece.size() < rest.size();
}

// Checks the messages that have arrived, and lets more arrive. Whether more are left.
bool IncomingFlow::check_arrived(uint64_t& budget) {
  const FlowPlan& plan = end_.plan();
  for (; !arrived_.empty() && budget > 0; arrived_.pop_front(), check_ = {}) {
    const Completion completion = arrived_.front();
    auto pair = static_cast<uint32_t>(completion.wr_id);
    uint64_t position = end_.received(pair);
    uint32_t skip = spec().op == FlowOp::kUd ? kGrhLen : 0;
    FlowPlan::Slot slot = plan.receive_slot(pair, position);
    check_.intact &= completion.byte_len == slot.length;
    std::span<const uint8_t> bytes;
    if (check_.intact && end_.makes_up()) bytes = end_.bytes_at(slot).subspan(skip);
    uint64_t message =
        is_unreliable(spec().op) ? completion.immediate : plan.message_index(pair, position);
    if (check_piece(bytes, message, budget)) return true;
    end_.take_receive(pair, slot.length - skip, check_.intact);
    stats().messages.add();
    end_.account(pair);
    end_.post_receives(pair, end_.received(pair));
  }
  return !arrived_.empty();
}

// Checks the next of the messages that lie in memory, the last ones of WRITEs. Whether more are
// left.
bool IncomingFlow::check_written(uint64_t& budget) {
  const FlowPlan& plan = end_.plan();
  for (; written_pair_ < spec().qps; ++written_pair_, written_message_ = 0) {
    uint64_t all = plan.messages_of(written_pair_), last = std::min(all, plan.depth);
    while (written_message_ < last) {
      uint64_t position = all - last + written_message_;
      uint64_t message = plan.message_index(written_pair_, position);
      if (check_piece(end_.message(written_pair_, position), message, budget)) return true;
      if (!check_.intact) ++mismatched_;
      check_ = {};
      ++written_message_;
      if (budget == 0) return true;
    }
  }
  return false;
}

void IncomingFlow::finish(std::function<void(FlowReport)> report) {
  report_ = std::move(report);
  if (finish_.scheduled()) return;
  scheduler().after(finish_, is_unreliable(spec().op) ? kLastOnes : 0);
}

void IncomingFlow::on_finish(TimeNs now) {
  on_completions(now);
  if (!running()) return;
  uint64_t budget = kPiece;
  bool written = flow_op_info(spec().op).writes() && end_.makes_up();
  if (!arrived_.empty() || (written && check_written(budget))) {
    return scheduler().after(finish_, kPieceTime);
  }
  FlowReport whole = report();
  stop();
  if (auto tell = std::exchange(report_, nullptr)) tell(whole);
}

// A near end that says nothing holds memory and queue pairs here for a while, not for ever.
void IncomingFlow::on_idle(TimeNs now) {
  uint64_t progress = stats().received.get() + end_.expected_psns();
  bool busy = report_ || end_.owes_responses();
  if (busy || progress != std::exchange(progress_, progress)) progressed_ns_ = now;
  if (now - progressed_ns_ >= kIdle) {
    return end(now, errorf(ETIMEDOUT, "nothing has come for {} s", kIdle / kSecond));
  }
  scheduler().after(idle_, kIdleLook);
}

// The far end sees no single WRITE, READ or atomic: once all have been done it reports them
// together.
FlowReport IncomingFlow::report() {
  if (sends_messages(spec().op)) {
    return {stats().received.get(), stats().bytes.get(), stats().mismatched.get()};
  }
  const FlowPlan& plan = end_.plan();
  FlowReport report{plan.count, plan.file ? *plan.file : plan.count * spec().size, mismatched_};
  if (spec().op == FlowOp::kAtomic && !end_.sum_is_right()) ++report.mismatched;
  stats().messages.set(report.received);
  stats().received.set(report.received);
  stats().bytes.set(report.bytes);
  stats().mismatched.set(report.mismatched);
  return report;
}

void IncomingFlow::close() {
  for (Event* event : {&prepare_, &finish_, &idle_}) scheduler().cancel(*event);
  arrived_.clear();
  end_.close();
}

}  // namespace rocefs
