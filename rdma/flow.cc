#include "rdma/flow.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstring>

#include "core/hash.h"
#include "rdma/device.h"
#include "rdma/fabric.h"

namespace rocefs {
namespace {

constexpr uint64_t kMaxDepth = 64;
constexpr uint32_t kPd = 1;
constexpr size_t kStampEvery = 256;  // the smallest MTU: every packet carries a stamp

uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

Flow::Flow(Fabric& fabric, const FlowSpec& spec, const Owner& owner,
           std::shared_ptr<FlowStats> stats, std::shared_ptr<LocalMemory> input, Ended ended)
    : fabric_(fabric),
      spec_(spec),
      owner_(owner),
      stats_(std::move(stats)),
      input_(std::move(input)),
      ended_(std::move(ended)),
      send_cq_(0),
      receive_cq_(0),
      poll_(event_of<&Flow::on_completions>(this)) {}

Flow::~Flow() {
  stop();
}

// How many messages, and how many at a time.
Result<void> Flow::plan() {
  count_ = spec_.count;
  if (input_) {
    uint64_t bytes = input_->bytes().size();
    count_ = std::max<uint64_t>(1, (bytes + spec_.size - 1) / spec_.size);
    depth_ = kMaxDepth;
    return {};
  }
  uint64_t each = std::max<uint64_t>(1, spec_.size) * spec_.qps;
  if (each > kMaxFlowMemory) {
    return errorf(EINVAL, "qps={} of size={} need more than {} bytes of memory", spec_.qps,
                  spec_.size, kMaxFlowMemory);
  }
  uint64_t wanted = (count_ + spec_.qps - 1) / spec_.qps;
  depth_ = std::clamp<uint64_t>(std::min(wanted, kMaxFlowMemory / 4 / each), 1, kMaxDepth);
  return {};
}

Result<void> Flow::open_end(End& end, const std::string& name, uint64_t bytes, uint8_t access,
                            std::shared_ptr<LocalMemory> memory) {
  end.port = fabric_.port(name);
  if (!end.port) return errorf(EINVAL, "no device {}", name);
  end.device = &end.port->device();
  if (!end.device->present()) return errorf(ENODEV, "{} has no driver", end.device->name());
  end.device->add_client(*this);
  end.memory = memory ? std::move(memory) : LocalMemory::create(bytes);
  if (!end.memory) return errorf(ENOMEM, "{} bytes of memory", bytes);
  end.address = end.device->allocate_address(bytes);
  Result<uint32_t> key = end.device->memory().add(end.memory, end.address, bytes, kPd, access);
  if (!key) return key.error();
  end.key = *key;
  return {};
}

Result<void> Flow::start() {
  if (Result<void> planned = plan(); !planned) return planned;
  uint64_t bytes = input_ ? input_->bytes().size() : spec_.size * spec_.qps * depth_;
  Result<void> opened = open_end(near_, spec_.from, bytes, 0, input_);
  if (opened) opened = open_end(far_, spec_.to, bytes, kLocalWrite | kRemoteWrite, nullptr);
  send_cq_ = CompletionQueue(spec_.qps * depth_);
  receive_cq_ = CompletionQueue(spec_.qps * depth_);
  pairs_.resize(spec_.qps);
  for (uint32_t i = 0; opened && i < spec_.qps; ++i) opened = connect(pairs_[i], i, owner_);
  if (!opened) {
    tear_down();
    return opened;
  }
  auto note = [this] {
    if (!poll_.scheduled()) fabric_.scheduler().after(poll_, 0);
  };
  send_cq_.set_listener(note);
  receive_cq_.set_listener(note);
  running_ = true;
  ++fabric_.outstanding().flows;
  stats_->started_ns.set(static_cast<uint64_t>(fabric_.scheduler().now()));
  for (uint32_t i = 0; i < spec_.qps; ++i) {
    post_receives(i);
    post_more(i);
  }
  return {};
}

Result<void> Flow::connect(Pair& pair, uint32_t index, const Owner& owner) {
  QpInit init;
  init.pd = kPd;
  init.send_cq = &send_cq_;
  init.receive_cq = &receive_cq_;
  init.send_depth = init.receive_depth = static_cast<uint32_t>(depth_);
  init.owner = owner;
  init.port = near_.port->number();
  Result<Qp*> near = near_.device->create_qp(init);
  if (!near) return near.error();
  pair.near = *near;
  init.port = far_.port->number();
  Result<Qp*> far = far_.device->create_qp(init);
  if (!far) return far.error();
  pair.far = *far;

  std::vector<Ip> near_gids = gids_of(near_.port->spec());
  std::vector<Ip> far_gids = gids_of(far_.port->spec());
  if (spec_.gid >= near_gids.size() || spec_.gid >= far_gids.size()) {
    return errorf(EINVAL, "gid={} is empty at an end", spec_.gid);
  }
  uint32_t mtu = std::min(near_.port->mtu(), far_.port->mtu());
  QpAttributes attributes;
  attributes.path_mtu = spec_.mtu ? spec_.mtu : mtu;
  attributes.timeout = spec_.timeout;
  attributes.retry_count = spec_.retry;
  attributes.window = spec_.window;
  attributes.access = kRemoteWrite;
  // Initial PSNs as a connection manager would draw them; the same in every run of a seed.
  uint64_t draw = mix(fabric_.seed() ^ fnv1a64(spec_.name) ^ index);
  uint32_t near_psn = draw & 0xffffff, far_psn = (draw >> 24) & 0xffffff;
  auto raise = [&](Qp& qp, uint32_t remote, const Ip& local, const Ip& far_ip, uint32_t send,
                   uint32_t receive) -> Result<void> {
    attributes.remote_qpn = remote;
    attributes.path.local = local;
    attributes.path.remote = far_ip;
    attributes.send_psn = send;
    attributes.receive_psn = receive;
    for (QpState state : {QpState::kInit, QpState::kRtr, QpState::kRts}) {
      if (Result<void> moved = qp.modify(state, attributes); !moved) return moved;
    }
    return {};
  };
  const Ip& near_ip = near_gids[spec_.gid];
  const Ip& far_ip = far_gids[spec_.gid];
  Result<void> up = raise(*pair.far, pair.near->number(), far_ip, near_ip, far_psn, near_psn);
  return up ? raise(*pair.near, pair.far->number(), near_ip, far_ip, near_psn, far_psn) : up;
}

// Message m goes over pair m mod qps.
uint64_t Flow::messages_of(uint32_t pair) const {
  return count_ / spec_.qps + (pair < count_ % spec_.qps ? 1 : 0);
}

uint64_t Flow::message_index(uint32_t pair, uint64_t position) const {
  return position * spec_.qps + pair;
}

Flow::Slot Flow::slot(uint32_t pair, uint64_t position) const {
  if (input_) {
    uint64_t offset = message_index(pair, position) * spec_.size;
    return {offset, static_cast<uint32_t>(std::min(spec_.size, input_->bytes().size() - offset))};
  }
  return {(pair * depth_ + position % depth_) * spec_.size, static_cast<uint32_t>(spec_.size)};
}

// Makes the message's bytes differ from those of the message that had this slot before.
void Flow::stamp(const Slot& at, uint64_t message) {
  uint8_t* bytes = near_.memory->bytes().data() + at.offset;
  for (uint64_t i = 0; i < at.length; i += kStampEvery) {
    uint64_t word = mix(fabric_.seed() ^ (message << 20) ^ i);
    std::memcpy(bytes + i, &word, std::min<uint64_t>(sizeof word, at.length - i));
  }
}

void Flow::post_receives(uint32_t index) {
  if (spec_.op != SendOp::kSend) return;
  Pair& pair = pairs_[index];
  while (pair.received < messages_of(index) && pair.received < pair.completed + depth_) {
    Slot at = slot(index, pair.received);
    ReceiveRequest request;
    request.wr_id = index;
    request.sge = {far_.address + at.offset, at.length, far_.key};
    if (!pair.far->responder().post(request)) return;
    ++pair.received;
  }
}

void Flow::post_more(uint32_t index) {
  Pair& pair = pairs_[index];
  while (pair.posted < messages_of(index) && pair.posted < pair.completed + depth_) {
    Slot at = slot(index, pair.posted);
    if (!input_) stamp(at, message_index(index, pair.posted));
    SendRequest request;
    request.wr_id = index;
    request.op = spec_.op;
    request.sge = {near_.address + at.offset, at.length, near_.key};
    request.remote_address = far_.address + at.offset;
    request.rkey = far_.key;
    if (!pair.near->requester().post(request)) return;
    ++pair.posted;
  }
}

void Flow::on_completions(TimeNs now) {
  std::array<Completion, 32> batch;
  while (receive_cq_.poll(batch) > 0) {
  }
  while (size_t taken = send_cq_.poll(batch)) {
    for (size_t i = 0; i < taken; ++i) {
      if (!take_send(batch[i])) {
        return finish(now, Error{EIO, std::string(name(batch[i].status))});
      }
    }
  }
  if (stats_->messages.get() == count_) finish(now, {});
}

// No work request completes before its last byte is placed: at this moment both ends are equal.
bool Flow::take_send(const Completion& completion) {
  if (completion.status != WcStatus::kSuccess) return false;
  auto index = static_cast<uint32_t>(completion.wr_id);
  Pair& pair = pairs_[index];
  Slot at = slot(index, pair.completed);
  const uint8_t* sent = near_.memory->bytes().data() + at.offset;
  const uint8_t* placed = far_.memory->bytes().data() + at.offset;
  if (at.length > 0 && std::memcmp(sent, placed, at.length) != 0) stats_->mismatched.add();
  stats_->bytes.add(at.length);
  stats_->messages.add();
  ++pair.completed;
  account(pair);
  post_receives(index);
  post_more(index);
  return true;
}

// Adds what the pair's requester has done since it was last asked.
void Flow::account(Pair& pair) {
  if (!pair.near) return;
  const Requester& requester = pair.near->requester();
  stats_->packets.add(requester.packets_sent() -
                      std::exchange(pair.packets, requester.packets_sent()));
  stats_->retransmitted.add(requester.packets_resent() -
                            std::exchange(pair.resent, requester.packets_resent()));
  stats_->timeouts.add(requester.timeouts() - std::exchange(pair.timeouts, requester.timeouts()));
}

void Flow::finish(TimeNs now, Result<void> result) {
  stats_->ended_ns.set(static_cast<uint64_t>(now));
  stop();
  if (ended_) ended_(std::move(result));
}

void Flow::device_removed(Device&) {
  finish(fabric_.scheduler().now(), Error{ENODEV, "device removed"});
}

void Flow::stop() {
  if (!running_) return;
  running_ = false;
  for (Pair& pair : pairs_) account(pair);
  if (stats_->ended_ns.get() == 0) {
    stats_->ended_ns.set(static_cast<uint64_t>(fabric_.scheduler().now()));
  }
  --fabric_.outstanding().flows;
  tear_down();
}

void Flow::tear_down() {
  send_cq_.set_listener(nullptr);
  receive_cq_.set_listener(nullptr);
  fabric_.scheduler().cancel(poll_);
  for (Pair& pair : pairs_) {
    if (pair.near) near_.device->destroy_qp(*pair.near);
    if (pair.far) far_.device->destroy_qp(*pair.far);
  }
  pairs_.clear();
  for (End* end : {&near_, &far_}) {
    if (end->device) end->device->remove_client(*this);
    if (end->key) end->device->memory().remove(end->key);
    end->key = 0;
  }
}

}  // namespace rocefs
