#include "rdma/half_flow.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "core/hash.h"
#include "rdma/fabric.h"

namespace rocefs {
namespace {

constexpr uint32_t kPd = 1;
constexpr uint32_t kQkey = 0x11111111;           // as the stock UD programs use
constexpr TimeNs kLastOnes = 20 * kMillisecond;  // for datagrams that are under way still

}  // namespace

HalfFlow::HalfFlow(Parts parts)
    : parts_(std::move(parts)),
      pattern_(parts_.seed),
      poll_(event_of<&HalfFlow::on_completions>(this)),
      finish_(event_of<&HalfFlow::on_finish>(this)) {}

HalfFlow::~HalfFlow() {
  stop();
}

Result<FlowEnd> HalfFlow::open() {
  port_ = parts_.fabric.port(spec().from);
  if (!port_) return errorf(EINVAL, "no device {}", spec().from);
  Device& device = port_->device();
  if (!device.present()) return errorf(ENODEV, "{} has no driver", device.name());
  device.add_client(*this);
  open_ = true;
  // The length of a file that is to be read the far end says later.
  bool later = parts_.near && reads() && parts_.file;
  Result<void> made = plan(later ? kMaxFlowMemory : parts_.file);
  if (made) made = make_qps();
  if (made && !later) made = make_memory();
  if (!made) {
    tear_down();
    return made.error();
  }
  FlowEnd end{port_->mtu(), address_, key_, parts_.file.value_or(0), {}};
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

Result<void> HalfFlow::make_qps() {
  send_cq_ = CompletionQueue(spec().qps * plan_->depth);
  receive_cq_ = CompletionQueue(spec().qps * plan_->depth);
  QpInit init;
  if (is_unreliable(spec().op)) init.type = spec().op == FlowOp::kUc ? QpType::kUc : QpType::kUd;
  init.pd = kPd;
  init.send_cq = &send_cq_;
  init.receive_cq = &receive_cq_;
  init.send_depth = init.receive_depth = static_cast<uint32_t>(plan_->depth);
  init.owner = parts_.owner;
  // Another life of this flow must not take the packets of this one.
  uint64_t life = static_cast<uint64_t>(parts_.fabric.scheduler().now());
  uint64_t draw = mix64(parts_.fabric.seed() ^ fnv1a64(spec().name) ^ mix64(life));
  for (uint32_t i = 0; i < spec().qps; ++i) {
    Result<Qp*> made = port_->device().create_qp(init);
    if (!made) return made.error();
    Pair& pair = pairs_.emplace_back();
    pair.qp = *made;
    pair.psn = mix64(draw ^ i) & 0xffffff;
  }
  return {};
}

Result<void> HalfFlow::make_memory() {
  Device& device = port_->device();
  uint64_t bytes = parts_.near ? plan_->bytes() : plan_->receive_bytes();
  memory_ = parts_.input;
  if (!memory_)
    memory_ = spec().verify ? LocalMemory::create(bytes) : LocalMemory::create_blank(bytes);
  if (!memory_) return errorf(ENOMEM, "{} bytes of memory", bytes);
  bool answered = reads() || spec().op == FlowOp::kAtomic;
  uint8_t access = answered ? kLocalWrite : 0;
  if (!parts_.near) {
    access = reads()                        ? kRemoteRead
             : spec().op == FlowOp::kAtomic ? kLocalWrite | kRemoteAtomic
             : spec().op == FlowOp::kWrite  ? kLocalWrite | kRemoteWrite
                                            : kLocalWrite;
  }
  address_ = device.allocate_address(bytes);
  Result<uint32_t> key = device.memory().add(memory_, address_, bytes, kPd, access);
  if (!key) return key.error();
  key_ = *key;
  if (parts_.near || !reads() || parts_.input || !spec().verify) return {};
  for (uint32_t i = 0; i < spec().qps; ++i) {  // what is read again and again
    uint64_t most = std::min(plan_->depth, plan_->messages_of(i));
    for (uint64_t at = 0; at < most; ++at) {
      pattern_.stamp(bytes_at(plan_->slot(i, at)), plan_->message_index(i, at));
    }
  }
  return {};
}

Result<void> HalfFlow::connect(const FlowEnd& other) {
  if (!open_) return Error{ENODEV, "device removed"};
  if (other.qps.size() != pairs_.size()) return Error{EINVAL, "another number of queue pairs"};
  if (parts_.near && reads() && parts_.file) {
    if (other.bytes > kMaxFlowMemory) {
      return errorf(EFBIG, "{} bytes, more than {}", other.bytes, kMaxFlowMemory);
    }
    Result<void> made = plan(other.bytes);
    if (made) made = make_memory();
    if (!made) return made;
  }
  uint32_t mtu = std::min(other.mtu, port_->mtu());
  if (spec().mtu) mtu = std::min(mtu, spec().mtu);
  if (spec().op == FlowOp::kUd && spec().size > mtu) {
    return errorf(EINVAL, "size={}: a datagram holds at most the MTU, {} bytes", spec().size, mtu);
  }
  far_address_ = other.address;
  far_key_ = other.key;
  for (uint32_t i = 0; i < pairs_.size(); ++i) {
    if (Result<void> up = bring_up(i, other.qps[i], mtu); !up) return up;
  }
  auto note = [this] {
    if (!poll_.scheduled()) parts_.fabric.scheduler().after(poll_, 0);
  };
  send_cq_.set_listener(note);
  receive_cq_.set_listener(note);
  running_ = true;
  ++parts_.fabric.outstanding().flows;
  if (parts_.near != reads()) pairs_[0].qp->congestion().publish_to(&parts_.stats->sender);
  parts_.stats->started_ns.set(static_cast<uint64_t>(parts_.fabric.scheduler().now()));
  for (uint32_t i = 0; i < pairs_.size(); ++i) {
    parts_.near ? post_more(i) : post_receives(i);
  }
  return {};
}

AddressVector HalfFlow::path() const {
  AddressVector path;
  path.local = parts_.local;
  path.remote = parts_.remote;
  return path;
}

Result<void> HalfFlow::bring_up(uint32_t index, const FlowQp& other, uint32_t mtu) {
  Pair& pair = pairs_[index];
  pair.other = other;
  QpAttributes attributes;
  attributes.port = port_->number();
  attributes.path = path();
  attributes.path_mtu = mtu;
  attributes.timeout = spec().timeout;
  attributes.retry_count = spec().retry;
  attributes.window = spec().window;
  // What the memory's key allows is less.
  attributes.access = kRemoteWrite | kRemoteRead | kRemoteAtomic;
  attributes.qkey = kQkey;
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
  FlowPlan::Slot at = plan_->slot(index, position);
  SendRequest request;
  request.wr_id = index;
  request.sges = Sge{address_ + at.offset, at.length, key_};
  request.remote_address = far_address_ + at.offset;
  request.rkey = far_key_;
  switch (spec().op) {
    case FlowOp::kWrite:
      request.op = SendOp::kWrite;
      break;
    case FlowOp::kSend:
      request.op = SendOp::kSend;
      break;
    case FlowOp::kRead:
      request.op = SendOp::kRead;
      break;
    case FlowOp::kAtomic:  // all add to one number
      request.op = SendOp::kFetchAdd;
      request.remote_address = far_address_;
      request.swap_add = 1;
      break;
    case FlowOp::kUc:
    case FlowOp::kUd:  // the receiver learns which message it is
      request.op = SendOp::kSendImm;
      request.immediate = static_cast<uint32_t>(plan_->message_index(index, position));
      request.path = path();
      request.remote_qpn = pairs_[index].other.qpn;
      request.qkey = kQkey;
      break;
  }
  return request;
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
    for (size_t i = 0; i < taken; ++i) take_receive(batch[i]);
  }
  while (size_t taken = send_cq_.poll(batch)) {
    for (size_t i = 0; i < taken; ++i) {
      if (!take_send(batch[i])) return end(now, Error{EIO, std::string(name(batch[i].status))});
    }
  }
  if (parts_.near && parts_.stats->messages.get() == plan_->count) end(now, {});
}

// One that fails the near end's completion tells of.
void HalfFlow::take_receive(const Completion& completion) {
  if (completion.status != WcStatus::kSuccess) return;
  auto index = static_cast<uint32_t>(completion.wr_id);
  Pair& pair = pairs_[index];
  bool unreliable = is_unreliable(spec().op);
  uint64_t position = pair.received++;
  uint64_t message = unreliable ? completion.immediate : plan_->message_index(index, position);
  uint32_t skip = spec().op == FlowOp::kUd ? kGrhLen : 0;
  FlowPlan::Slot at = plan_->receive_slot(index, position);
  uint32_t length = at.length - skip;
  bool whole = completion.byte_len == at.length;
  if (spec().verify && !plan_->file) {
    whole = whole && pattern_.stamped(bytes_at(at).subspan(skip, length), message);
  }
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
  FlowReport report = look_at_all();
  stop();
  if (tell_) std::exchange(tell_, nullptr)(report);
}

// What the far end cannot know of each message it knows of all that were moved.
FlowReport HalfFlow::look_at_all() {
  if (sends_messages(spec().op)) return report_;
  FlowReport report{plan_->count, plan_->file ? *plan_->file : plan_->count * spec().size, 0};
  if (spec().op == FlowOp::kAtomic) {
    uint64_t left = 0;
    std::memcpy(&left, memory_->bytes().data(), sizeof left);
    if (left != plan_->count) ++report.mismatched;
  } else if (spec().op == FlowOp::kWrite && spec().verify && !plan_->file) {
    for (uint32_t i = 0; i < spec().qps; ++i) {
      uint64_t all = plan_->messages_of(i);
      for (uint64_t at = all - std::min(all, plan_->depth); at < all; ++at) {
        bool same = pattern_.stamped(bytes_at(plan_->slot(i, at)), plan_->message_index(i, at));
        if (!same) ++report.mismatched;
      }
    }
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
  parts_.fabric.scheduler().cancel(finish_);
  Device& device = port_->device();
  for (Pair& pair : pairs_) device.destroy_qp(*pair.qp);
  pairs_.clear();
  device.remove_client(*this);
  if (key_) (void)device.memory().remove(std::exchange(key_, 0));
}

}  // namespace rocefs
