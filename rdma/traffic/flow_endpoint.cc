#include "rdma/traffic/flow_endpoint.h"

#include <array>
#include <cerrno>
#include <cstring>

#include "rdma/network/fabric.h"
#include "rdma/traffic/made_up_memory.h"

namespace rocefs {
namespace {

constexpr uint32_t kFlowPd = 1;

uint64_t word_at(std::span<const uint8_t> bytes) {
  uint64_t word = 0;
  std::memcpy(&word, bytes.data(), sizeof word);
  return word;
}

}  // namespace

Result<void> FlowEndpoint::open(const std::string& port) {
  port_ = parts_.fabric.port(port);
  if (!port_) return errorf(EINVAL, "no device {}", port);
  Device& device = device_of(*port_);
  if (!device.present()) return errorf(ENODEV, "{} has no driver", device.name());
  device.add_client(*this);
  open_ = true;
  return {};
}

void FlowEndpoint::make_queues() {
  size_t depth = spec().qps * plan_.depth;
  if (near()) send_cq_ = CompletionQueue(depth);
  if (!near() && sends_messages(spec().op)) receive_cq_ = CompletionQueue(depth);
}

Result<void> FlowEndpoint::register_memory(Contents contents) {
  Device& device = device_of(*port_);
  uint64_t bytes = near() ? plan_.bytes() : plan_.receive_bytes();
  std::shared_ptr<Memory> registered;
  if (contents == Contents::kMadeUp) {
    registered = std::make_shared<MadeUpMemory>(plan_, pattern_);
  } else {
    if (is_source()) memory_ = parts_.input;
    if (!memory_) {
      memory_ = spec().verify ? LocalMemory::create(bytes) : LocalMemory::create_blank(bytes);
    }
    if (!memory_) return errorf(ENOMEM, "{} bytes of memory", bytes);
    registered = memory_;
  }
  address_ = device.allocate_address(bytes);
  Result<uint32_t> key = device.memory().add(registered, address_, bytes, kFlowPd, access());
  if (!key) return key.error();
  key_ = *key;
  return {};
}

uint8_t FlowEndpoint::access() const {
  bool atomic = spec().op == FlowOp::kAtomic;
  if (near()) return reads() || atomic ? kLocalWrite : 0;
  return flow_op_info(spec().op).access;
}

Result<void> FlowEndpoint::add_qp(uint32_t psn) {
  if (pairs_.empty()) make_queues();
  QpInit init;
  init.type = flow_op_info(spec().op).service;
  init.pd = kFlowPd;
  init.send_cq = &send_cq_;
  init.receive_cq = &receive_cq_;
  init.send_depth = init.receive_depth = static_cast<uint32_t>(plan_.depth);
  init.owner = parts_.owner;
  Device& device = device_of(*port_);
  Result<Qp*> made = device.create_qp(init);
  if (!made && made.error().code == ENOMEM) {
    return errorf(ENOMEM, "{}: all of its {} queue pairs are in use", device.name(),
                  QpTable::kMaxQps);
  }
  if (!made) return made.error();
  Pair& pair = pairs_.emplace_back();
  pair.qp = *made;
  pair.psn = psn;
  return {};
}

Result<void> FlowEndpoint::bring_up(uint32_t index, const FlowQp& other) {
  Pair& pair = pairs_[index];
  pair.other_qpn = other.qpn;
  QpAttributes attributes;
  attributes.port = port_->number();
  attributes.path = peer_.path;
  attributes.path_mtu = peer_.mtu;
  attributes.timeout = spec().timeout;
  attributes.retry_count = spec().retry;
  attributes.window = spec().window;
  // The memory's key allows less.
  attributes.access = kRemoteWrite | kRemoteRead | kRemoteAtomic;
  attributes.qkey = FlowPlan::kQkey;
  attributes.remote_qpn = other.qpn;
  attributes.send_psn = pair.psn;
  attributes.receive_psn = other.psn;
  return pair.qp->bring_up(attributes);
}

void FlowEndpoint::listen() {
  auto note = [this] { handler_.completion_queued(); };
  send_cq_.set_listener(note);
  receive_cq_.set_listener(note);
}

void FlowEndpoint::destroy_qp(uint32_t index) {
  if (index >= pairs_.size() || !pairs_[index].qp) return;
  account(index);
  device_of(*port_).destroy_qp(*std::exchange(pairs_[index].qp, nullptr));
}

void FlowEndpoint::close() {
  if (!std::exchange(open_, false)) return;
  send_cq_.set_listener(nullptr);
  receive_cq_.set_listener(nullptr);
  for (uint32_t i = 0; i < pairs_.size(); ++i) destroy_qp(i);
  pairs_.clear();
  Device& device = device_of(*port_);
  device.remove_client(*this);
  if (key_) (void)device.memory().remove(std::exchange(key_, 0));
}

bool FlowEndpoint::makes_up() const {
  return spec().verify && !plan_.file && spec().op != FlowOp::kAtomic;
}

SendRequest FlowEndpoint::request_of(uint32_t index, uint64_t position) const {
  FlowPlan::Target target{address_,  key_,       peer_.address,
                          peer_.key, peer_.path, pairs_[index].other_qpn};
  return plan_.request(index, position, target);
}

void FlowEndpoint::post_more(uint32_t index) {
  Pair& pair = pairs_[index];
  while (pair.posted < plan_.messages_of(index) && pair.posted < pair.completed + plan_.depth) {
    handler_.before_post(index, pair.posted);
    if (!pair.qp->post(request_of(index, pair.posted))) return;
    ++pair.posted;
  }
}

Result<void> FlowEndpoint::take_sends() {
  std::array<Completion, 32> batch;
  while (size_t taken = send_cq_.poll(batch)) {
    for (size_t i = 0; i < taken; ++i) {
      if (batch[i].status != WcStatus::kSuccess) {
        return Error{EIO, std::string(name(batch[i].status))};
      }
      take_send(static_cast<uint32_t>(batch[i].wr_id));
    }
  }
  return {};
}

void FlowEndpoint::take_send(uint32_t index) {
  Pair& pair = pairs_[index];
  uint64_t position = pair.completed++;
  FlowStats& stats = *parts_.stats;
  if (spec().op == FlowOp::kAtomic) originals_ += word_at(message(index, position));
  if (!is_unreliable(spec().op)) {
    stats.bytes.add(plan_.slot(index, position).length);
    stats.received.add();
  }
  stats.messages.add();
  account(index);
  handler_.after_send(index, position);
  post_more(index);
}

void FlowEndpoint::post_receives(uint32_t index, uint64_t done) {
  if (!sends_messages(spec().op)) return;
  Pair& pair = pairs_[index];
  uint64_t wanted = is_unreliable(spec().op) ? ~uint64_t{0} : plan_.messages_of(index);
  while (pair.receives < wanted && pair.receives < done + plan_.depth) {
    FlowPlan::Slot at = plan_.receive_slot(index, pair.receives);
    ReceiveRequest request;
    request.wr_id = index;
    request.sges = Sge{address_ + at.offset, at.length, key_};
    if (!pair.qp->post(request)) return;
    ++pair.receives;
  }
}

void FlowEndpoint::take_receive(uint32_t index, uint32_t length, bool intact) {
  ++pairs_[index].received;
  parts_.stats->received.add();
  parts_.stats->bytes.add(length);
  if (!intact) parts_.stats->mismatched.add();
}

void FlowEndpoint::account(uint32_t index) {
  Pair& pair = pairs_[index];
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

void FlowEndpoint::account() {
  for (uint32_t i = 0; i < pairs_.size(); ++i) {
    if (pairs_[i].qp) account(i);
  }
}

bool FlowEndpoint::sum_is_right() const {
  return word_at(memory_->bytes()) == plan_.count;
}

uint64_t FlowEndpoint::expected_psns() const {
  uint64_t sum = 0;
  for (const Pair& pair : pairs_) sum += pair.qp->responder().expected();
  return sum;
}

bool FlowEndpoint::owes_responses() const {
  for (const Pair& pair : pairs_) {
    if (pair.qp->responder().owes_response()) return true;
  }
  return false;
}

}  // namespace rocefs
