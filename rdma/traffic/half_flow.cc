#include "rdma/traffic/half_flow.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "core/base/hash.h"
#include "rdma/network/fabric.h"
#include "rdma/traffic/made_up_memory.h"

namespace rocefs {
namespace {

constexpr uint32_t kHalfFlowPd = 1;
constexpr TimeNs kLastOnes = 20 * kMillisecond;  // for datagrams that are under way still
constexpr TimeNs kIdleLook = HalfFlow::kIdle / 8;

}  // namespace

HalfFlow::HalfFlow(Parts parts)
    : parts_(std::move(parts)),
      pattern_(parts_.seed),
      poll_(event_of<&HalfFlow::on_completions>(this)),
      prepare_(event_of<&HalfFlow::on_prepare>(this)),
      finish_(event_of<&HalfFlow::on_finish>(this)),
      idle_(event_of<&HalfFlow::on_idle>(this)) {}

HalfFlow::~HalfFlow() {
  stop();
  if (parts_.discard && memory_) parts_.discard(std::move(memory_));
}

Result<EndpointInfo> HalfFlow::open() {
  // The length of a file that is to be read the far end says later.
  bool later = reads() && parts_.file;
  Result<void> made = begin(later ? kMaxFlowMemory : parts_.file);
  while (made && pairs_.size() < spec().qps) made = make_qp();
  if (made && !later) made = make_memory();
  if (made) return own_end();
  tear_down();
  return made.error();
}

Result<void> HalfFlow::begin(std::optional<uint64_t> file) {
  port_ = parts_.fabric.port(spec().from);
  if (!port_) return errorf(EINVAL, "no device {}", spec().from);
  Device& device = device_of(*port_);
  if (!device.present()) return errorf(ENODEV, "{} has no driver", device.name());
  device.add_client(*this);
  open_ = true;
  // Another life of this flow must not take the packets of this one.
  uint64_t life = static_cast<uint64_t>(parts_.fabric.scheduler().now());
  draw_ = mix64(parts_.fabric.seed() ^ fnv1a64(spec().name) ^ mix64(life));
  Result<void> planned = plan(file);
  if (!planned) return planned;
  size_t most = spec().qps * plan_->depth;
  if (parts_.near) send_cq_ = CompletionQueue(most);
  if (!parts_.near && sends_messages(spec().op)) receive_cq_ = CompletionQueue(most);
  return {};
}

EndpointInfo HalfFlow::own_end() const {
  EndpointInfo end{port_->mtu(), address_, key_, parts_.file.value_or(0), {}};
  if (spec().mtu) end.mtu = std::min(end.mtu, spec().mtu);
  for (const Pair& pair : pairs_) end.qps.push_back({pair.qp->number(), pair.psn});
  return end;
}

Result<void> HalfFlow::plan(std::optional<uint64_t> file) {
  Result<FlowPlan> planned = FlowPlan::of(spec(), file);
  if (!planned) return planned.error();
  plan_ = *planned;
  return {};
}

Result<void> HalfFlow::make_qp() {
  QpInit init;
  if (is_unreliable(spec().op)) init.type = spec().op == FlowOp::kUc ? QpType::kUc : QpType::kUd;
  init.pd = kHalfFlowPd;
  init.send_cq = &send_cq_;
  init.receive_cq = &receive_cq_;
  init.send_depth = init.receive_depth = static_cast<uint32_t>(plan_->depth);
  init.owner = parts_.owner;
  Result<Qp*> made = device_of(*port_).create_qp(init);
  if (!made) return made.error();
  uint32_t psn = mix64(draw_ ^ pairs_.size()) & 0xffffff;
  Pair& pair = pairs_.emplace_back();
  pair.qp = *made;
  pair.psn = psn;
  return {};
}

Result<void> HalfFlow::make_memory() {
  Device& device = device_of(*port_);
  uint64_t bytes = parts_.near ? plan_->bytes() : plan_->receive_bytes();
  bool made_up = !parts_.near && reads() && !parts_.input && spec().verify;
  memory_ = parts_.input;
  if (!memory_ && !made_up) {
    memory_ = spec().verify ? LocalMemory::create(bytes) : LocalMemory::create_blank(bytes);
    if (!memory_) return errorf(ENOMEM, "{} bytes of memory", bytes);
  }
  std::shared_ptr<Memory> registered = memory_;
  if (made_up) registered = std::make_shared<MadeUpMemory>(*plan_, pattern_);
  bool answered = reads() || spec().op == FlowOp::kAtomic;
  uint8_t access = answered ? kLocalWrite : 0;
  if (!parts_.near) access = flow_op_info(spec().op).access;
  address_ = device.allocate_address(bytes);
  Result<uint32_t> key = device.memory().add(registered, address_, bytes, kHalfFlowPd, access);
  if (!key) return key.error();
  key_ = *key;
  return {};
}

Result<void> HalfFlow::serve(EndpointInfo near, Ready ready) {
  near_ = std::move(near);
  if (near_.qps.size() != spec().qps) return Error{EINVAL, "another number of queue pairs"};
  Result<void> made = begin(parts_.file);
  if (made) made = meet(near_);
  if (made) made = make_memory();
  if (made) {
    ready_ = std::move(ready);
    parts_.fabric.scheduler().after(prepare_, 0);
  } else if (open_) {
    tear_down();
  }
  return made;
}

// The next piece of what the far end needs before the near one may begin.
void HalfFlow::on_prepare(TimeNs) {
  Result<bool> more = prepare_some();
  if (more && *more) return parts_.fabric.scheduler().after(prepare_, kPieceTime);
  Ready ready = std::exchange(ready_, nullptr);
  if (!more) {
    tear_down();
    return ready(more.error());
  }
  run();
  ready(own_end());
}

// Whether there is more to do.
Result<bool> HalfFlow::prepare_some() {
  uint32_t left = kQpsAtOnce;
  for (; left > 0 && joined_ < spec().qps; --left, ++joined_) {
    Result<void> made = make_qp();
    if (made) made = bring_up(joined_, near_.qps[joined_]);
    if (!made) return made.error();
    post_receives(joined_);
  }
  return joined_ < spec().qps;
}

// Looks at the next of the messages that lie in memory, the last ones of a WRITE. Whether there are
// more.
bool HalfFlow::work_on(uint64_t& budget) {
  for (; at_.pair < spec().qps; ++at_.pair, at_.message = 0) {
    uint64_t all = plan_->messages_of(at_.pair), some = std::min(all, plan_->depth);
    for (; at_.message < some; ++at_.message, at_.offset = 0, at_.whole = true) {
      uint64_t position = all - some + at_.message;
      uint64_t index = plan_->message_index(at_.pair, position);
      std::span<uint8_t> rest = bytes_at(plan_->slot(at_.pair, position)).subspan(at_.offset);
      std::span<uint8_t> piece = rest.first(std::min<uint64_t>(rest.size(), budget));
      at_.whole &= pattern_.stamped(piece, index, at_.offset);
      at_.offset += piece.size();
      budget -= std::min(budget, piece.size() + FlowPattern::kEvery);
      if (piece.size() < rest.size()) return true;
      mismatched_ += !at_.whole;
      if (budget == 0) {
        ++at_.message;
        at_.offset = 0;
        at_.whole = true;
        return true;
      }
    }
  }
  return false;
}

Result<void> HalfFlow::connect(const EndpointInfo& other) {
  if (!open_) return Error{ENODEV, "device removed"};
  if (other.qps.size() != pairs_.size()) return Error{EINVAL, "another number of queue pairs"};
  if (reads() && parts_.file) {
    if (other.bytes > kMaxFlowMemory) {
      return errorf(EFBIG, "{} bytes, more than {}", other.bytes, kMaxFlowMemory);
    }
    Result<void> made = plan(other.bytes);
    if (made) made = make_memory();
    if (!made) return made;
  }
  if (Result<void> met = meet(other); !met) return met;
  for (uint32_t i = 0; i < pairs_.size(); ++i) {
    if (Result<void> up = bring_up(i, other.qps[i]); !up) return up;
  }
  run();
  for (uint32_t i = 0; i < pairs_.size(); ++i) post_more(i);
  return {};
}

// What both ends can.
Result<void> HalfFlow::meet(const EndpointInfo& other) {
  mtu_ = std::min(other.mtu, port_->mtu());
  if (spec().mtu) mtu_ = std::min(mtu_, spec().mtu);
  if (spec().op == FlowOp::kUd && spec().size > mtu_) {
    return errorf(EINVAL, "size={}: a datagram holds at most the MTU, {} bytes", spec().size, mtu_);
  }
  far_address_ = other.address;
  far_key_ = other.key;
  return {};
}

void HalfFlow::run() {
  auto note = [this] {
    if (!poll_.scheduled()) parts_.fabric.scheduler().after(poll_, 0);
  };
  send_cq_.set_listener(note);
  receive_cq_.set_listener(note);
  running_ = true;
  progressed_ = parts_.fabric.scheduler().now();
  if (!parts_.near) parts_.fabric.scheduler().after(idle_, kIdleLook);
  ++parts_.fabric.outstanding().flows;
  if (parts_.near != reads()) pairs_[0].qp->congestion().publish_to(&parts_.stats->sender);
  parts_.stats->started_ns.set(static_cast<uint64_t>(parts_.fabric.scheduler().now()));
}

AddressVector HalfFlow::path() const {
  AddressVector path;
  path.local = parts_.local;
  path.remote = parts_.remote;
  return path;
}

Result<void> HalfFlow::bring_up(uint32_t index, const FlowQp& other) {
  Pair& pair = pairs_[index];
  pair.other = other;
  QpAttributes attributes;
  attributes.port = port_->number();
  attributes.path = path();
  attributes.path_mtu = mtu_;
  attributes.timeout = spec().timeout;
  attributes.retry_count = spec().retry;
  attributes.window = spec().window;
  // What the memory's key allows is less.
  attributes.access = kRemoteWrite | kRemoteRead | kRemoteAtomic;
  attributes.qkey = FlowPlan::kQkey;
  attributes.remote_qpn = other.qpn;
  attributes.send_psn = pair.psn;
  attributes.receive_psn = other.psn;
  return pair.qp->bring_up(attributes);
}

void HalfFlow::post_receives(uint32_t index) {
  if (!sends_messages(spec().op)) return;
  Pair& pair = pairs_[index];
  uint64_t wanted = is_unreliable(spec().op) ? ~uint64_t{0} : plan_->messages_of(index);
  while (pair.receives < wanted && pair.receives < pair.received + plan_->depth) {
    FlowPlan::Slot at = plan_->receive_slot(index, pair.receives);
    ReceiveRequest request;
    request.wr_id = index;
    request.sges = Sge{address_ + at.offset, at.length, key_};
    if (!pair.qp->post(request)) return;
    ++pair.receives;
  }
}

SendRequest HalfFlow::request_of(uint32_t index, uint64_t position) const {
  FlowPlan::Target target{address_, key_, far_address_, far_key_, path(), pairs_[index].other.qpn};
  return plan_->request(index, position, target);
}

void HalfFlow::post_more(uint32_t index) {
  Pair& pair = pairs_[index];
  bool made_up = spec().verify && !plan_->file && spec().op != FlowOp::kAtomic;
  while (pair.posted < plan_->messages_of(index) && pair.posted < pair.completed + plan_->depth) {
    std::span<uint8_t> bytes = bytes_at(plan_->slot(index, pair.posted));
    if (made_up && reads()) FlowPattern::clear(bytes);
    if (made_up && !reads()) pattern_.stamp(bytes, plan_->message_index(index, pair.posted));
    if (!pair.qp->post(request_of(index, pair.posted))) return;
    ++pair.posted;
  }
}

void HalfFlow::on_completions(TimeNs now) {
  std::array<Completion, 32> batch;
  while (size_t taken = receive_cq_.poll(batch)) {
    for (size_t i = 0; i < taken; ++i) {  // of one that fails the near end's completion tells
      if (batch[i].status == WcStatus::kSuccess) arrived_.push_back(batch[i]);
    }
  }
  uint64_t budget = kPiece;
  if (take_arrived(budget) && !poll_.scheduled()) {
    parts_.fabric.scheduler().after(poll_, kPieceTime);
  }
  while (size_t taken = send_cq_.poll(batch)) {
    for (size_t i = 0; i < taken; ++i) {
      if (!take_send(batch[i])) return end(now, Error{EIO, std::string(name(batch[i].status))});
    }
  }
  if (parts_.near && parts_.stats->messages.get() == plan_->count) end(now, {});
}

// Looks at what has arrived, and lets more arrive. Whether there is more to look at.
bool HalfFlow::take_arrived(uint64_t& budget) {
  for (; !arrived_.empty() && budget > 0; arrived_.pop_front(), at_ = {}) {
    Completion completion = arrived_.front();
    auto index = static_cast<uint32_t>(completion.wr_id);
    uint64_t position = pairs_[index].received;
    uint32_t skip = spec().op == FlowOp::kUd ? kGrhLen : 0;
    FlowPlan::Slot slot = plan_->receive_slot(index, position);
    at_.whole &= completion.byte_len == slot.length;
    std::span<const uint8_t> rest;
    if (at_.whole && spec().verify && !plan_->file) {
      rest = bytes_at(slot).subspan(skip + at_.offset);
    }
    uint64_t message =
        is_unreliable(spec().op) ? completion.immediate : plan_->message_index(index, position);
    std::span<const uint8_t> piece = rest.first(std::min<uint64_t>(rest.size(), budget));
    at_.whole &= pattern_.stamped(piece, message, at_.offset);
    at_.offset += piece.size();
    budget -= std::min(budget, piece.size() + FlowPattern::kEvery);
    if (piece.size() < rest.size()) return true;
    take_receive(completion, at_.whole);
  }
  return !arrived_.empty();
}

void HalfFlow::take_receive(const Completion& completion, bool whole) {
  auto index = static_cast<uint32_t>(completion.wr_id);
  Pair& pair = pairs_[index];
  FlowPlan::Slot at = plan_->receive_slot(index, pair.received++);
  uint32_t length = at.length - (spec().op == FlowOp::kUd ? kGrhLen : 0);
  if (!whole) ++report_.mismatched;
  ++report_.received;
  report_.bytes += length;
  parts_.stats->received.add();
  parts_.stats->messages.add();
  parts_.stats->bytes.add(length);
  if (!whole) parts_.stats->mismatched.add();
  account(pair);
  post_receives(index);
}

bool HalfFlow::take_send(const Completion& completion) {
  if (completion.status != WcStatus::kSuccess) return false;
  auto index = static_cast<uint32_t>(completion.wr_id);
  Pair& pair = pairs_[index];
  FlowPlan::Slot at = plan_->slot(index, pair.completed);
  if (reads() || spec().op == FlowOp::kAtomic) {
    // The far end has made up one message for each place.
    take_answer(at, plan_->message_index(index, pair.completed % plan_->depth));
  }
  if (!is_unreliable(spec().op)) {
    parts_.stats->bytes.add(at.length);
    parts_.stats->received.add();
  }
  parts_.stats->messages.add();
  ++pair.completed;
  account(pair);
  post_more(index);
  return true;
}

void HalfFlow::take_answer(const FlowPlan::Slot& at, uint64_t message) {
  if (spec().op == FlowOp::kAtomic) {
    uint64_t original = 0;
    std::memcpy(&original, bytes_at(at).data(), sizeof original);
    originals_ += original;
  } else if (spec().verify && !plan_->file && !pattern_.stamped(bytes_at(at), message)) {
    parts_.stats->mismatched.add();
  }
}

void HalfFlow::finish(std::function<void(FlowReport)> report) {
  tell_ = std::move(report);
  if (finish_.scheduled()) return;
  parts_.fabric.scheduler().after(finish_, is_unreliable(spec().op) ? kLastOnes : 0);
}

void HalfFlow::on_finish(TimeNs now) {
  on_completions(now);
  if (!running_) return;  // it failed
  uint64_t budget = kPiece;
  bool looked_at = flow_op_info(spec().op).writes() && spec().verify && !plan_->file;
  if (!arrived_.empty() || (looked_at && work_on(budget))) {
    return parts_.fabric.scheduler().after(finish_, kPieceTime);
  }
  FlowReport report = report_of_all();
  stop();
  if (tell_) std::exchange(tell_, nullptr)(report);
}

// A near end that says nothing holds what it has here for a while, and not for ever.
void HalfFlow::on_idle(TimeNs now) {
  uint64_t progress = report_.received;
  bool busy = static_cast<bool>(tell_);
  for (Pair& pair : pairs_) {
    progress += pair.qp->responder().expected();
    busy |= pair.qp->responder().owes_response();
  }
  if (busy || progress != std::exchange(progress_, progress)) progressed_ = now;
  if (now - progressed_ >= kIdle) {
    return end(now, errorf(ETIMEDOUT, "nothing has come for {} s", kIdle / kSecond));
  }
  parts_.fabric.scheduler().after(idle_, kIdleLook);
}

// What the far end cannot know of each message it knows of all that were moved.
FlowReport HalfFlow::report_of_all() {
  if (sends_messages(spec().op)) return report_;
  FlowReport report{plan_->count, plan_->file ? *plan_->file : plan_->count * spec().size,
                    mismatched_};
  if (spec().op == FlowOp::kAtomic) {
    uint64_t left = 0;
    std::memcpy(&left, memory_->bytes().data(), sizeof left);
    if (left != plan_->count) ++report.mismatched;
  }
  parts_.stats->messages.set(report.received);
  parts_.stats->received.set(report.received);
  parts_.stats->bytes.set(report.bytes);
  parts_.stats->mismatched.set(report.mismatched);
  return report;
}

void HalfFlow::conclude(const FlowReport& report) {
  FlowStats& stats = *parts_.stats;
  if (is_unreliable(spec().op)) {
    stats.bytes.set(report.bytes);
    stats.received.set(report.received);
  }
  stats.mismatched.add(report.mismatched);
}

// Adds what the queue pair has done since it was last asked.
void HalfFlow::account(Pair& pair) {
  FlowStats& stats = *parts_.stats;
  const Requester& requester = pair.qp->requester();
  stats.packets.add(requester.packets_sent() -
                    std::exchange(pair.packets, requester.packets_sent()));
  stats.retransmitted.add(requester.packets_resent() -
                          std::exchange(pair.resent, requester.packets_resent()));
  stats.timeouts.add(requester.timeouts() - std::exchange(pair.timeouts, requester.timeouts()));
  uint64_t cnps = pair.qp->congestion().cnps();
  stats.cnps.add(cnps - std::exchange(pair.cnps, cnps));
}

void HalfFlow::end(TimeNs now, Result<void> result) {
  parts_.stats->ended_ns.set(static_cast<uint64_t>(now));
  if (result && spec().op == FlowOp::kAtomic && originals_ != plan_->originals()) {
    parts_.stats->mismatched.add();  // each addition finds another number
  }
  stop();
  if (parts_.ended) std::exchange(parts_.ended, nullptr)(std::move(result));
}

void HalfFlow::device_removed(Device&) {
  end(parts_.fabric.scheduler().now(), Error{ENODEV, "device removed"});
}

void HalfFlow::stop() {
  if (!open_) return;
  if (std::exchange(running_, false)) {
    for (Pair& pair : pairs_) account(pair);
    --parts_.fabric.outstanding().flows;
    if (parts_.stats->ended_ns.get() == 0) {
      parts_.stats->ended_ns.set(static_cast<uint64_t>(parts_.fabric.scheduler().now()));
    }
  }
  tear_down();
}

void HalfFlow::tear_down() {
  open_ = false;
  send_cq_.set_listener(nullptr);
  receive_cq_.set_listener(nullptr);
  parts_.fabric.scheduler().cancel(poll_);
  parts_.fabric.scheduler().cancel(prepare_);
  parts_.fabric.scheduler().cancel(finish_);
  parts_.fabric.scheduler().cancel(idle_);
  arrived_.clear();
  Device& device = device_of(*port_);
  for (Pair& pair : pairs_) device.destroy_qp(*pair.qp);
  pairs_.clear();
  device.remove_client(*this);
  if (key_) (void)device.memory().remove(std::exchange(key_, 0));
}

}  // namespace rocefs
