#include "rdma/traffic/flow.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstring>

#include "core/base/hash.h"
#include "rdma/network/fabric.h"
#include "rdma/nic/device.h"

namespace rocefs {
namespace {

constexpr uint32_t kPd = 1;

}  // namespace

Flow::Flow(Fabric& fabric, const FlowSpec& spec, const QpOwner& owner,
           std::shared_ptr<FlowStats> stats, std::shared_ptr<LocalMemory> input, Ended ended)
    : fabric_(fabric),
      spec_(spec),
      owner_(owner),
      stats_(std::move(stats)),
      input_(std::move(input)),
      ended_(std::move(ended)),
      pattern_(fabric.seed()),
      send_cq_(0),
      receive_cq_(0),
      poll_(event_of<&Flow::on_completions>(this)) {}

Flow::~Flow() {
  stop();
}

Result<void> Flow::open_ends() {
  for (auto [end, name] : {std::pair(&near_, &spec_.from), std::pair(&far_, &spec_.to)}) {
    end->port = fabric_.port(*name);
    if (!end->port) return errorf(EINVAL, "no device {}", *name);
  }
  uint64_t bytes = plan_.bytes(), far_bytes = plan_.receive_bytes();
  bool read = spec_.op == FlowOp::kRead;
  bool answered = read || spec_.op == FlowOp::kAtomic;
  uint8_t remote = read                          ? kRemoteRead
                   : spec_.op == FlowOp::kAtomic ? kLocalWrite | kRemoteAtomic
                                                 : kLocalWrite | kRemoteWrite;
  Result<void> opened = open_end(near_, bytes, answered ? kLocalWrite : 0, read ? nullptr : input_);
  return opened ? open_end(far_, far_bytes, remote, read ? input_ : nullptr) : opened;
}

Result<void> Flow::open_end(End& end, uint64_t bytes, uint8_t access,
                            std::shared_ptr<LocalMemory> memory) {
  end.device = &device_of(*end.port);
  if (!end.device->present()) return errorf(ENODEV, "{} has no driver", end.device->name());
  end.device->add_client(*this);
  end.memory = memory ? std::move(memory) : fresh_memory(bytes);
  if (!end.memory) return errorf(ENOMEM, "{} bytes of memory", bytes);
  end.address = end.device->allocate_address(bytes);
  Result<uint32_t> key = end.device->memory().add(end.memory, end.address, bytes, kPd, access);
  if (!key) return key.error();
  end.key = *key;
  return {};
}

Result<void> Flow::start() {
  std::optional<uint64_t> file;
  if (input_) file = input_->bytes().size();
  Result<FlowPlan> planned = FlowPlan::of(spec_, file);
  if (!planned) return planned.error();
  plan_ = *planned;
  Result<void> opened = open_ends();
  send_cq_ = CompletionQueue(spec_.qps * plan_.depth);
  receive_cq_ = CompletionQueue(spec_.qps * plan_.depth);
  pairs_.resize(spec_.qps);
  for (uint32_t i = 0; opened && i < spec_.qps; ++i) opened = connect(pairs_[i], i);
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
  Qp* sender = spec_.op == FlowOp::kRead ? pairs_[0].far : pairs_[0].near;
  sender->congestion().publish_to(&stats_->sender);
  ++fabric_.outstanding().flows;
  stats_->started_ns.set(static_cast<uint64_t>(fabric_.scheduler().now()));
  for (uint32_t i = 0; i < spec_.qps; ++i) {
    post_receives(i);
    post_more(i);
  }
  return {};
}

Result<void> Flow::make_pair(Pair& pair) {
  QpInit init;
  if (unreliable()) init.type = spec_.op == FlowOp::kUc ? QpType::kUc : QpType::kUd;
  init.pd = kPd;
  init.send_cq = &send_cq_;
  init.receive_cq = &receive_cq_;
  init.send_depth = init.receive_depth = static_cast<uint32_t>(plan_.depth);
  init.owner = owner_;
  Result<Qp*> near = near_.device->create_qp(init);
  if (!near) return near.error();
  pair.near = *near;
  Result<Qp*> far = far_.device->create_qp(init);
  if (!far) return far.error();
  pair.far = *far;
  return {};
}

Result<void> Flow::connect(Pair& pair, uint32_t index) {
  if (Result<void> made = make_pair(pair); !made) return made;
  std::vector<Ip> near_gids = gids_of(near_.port->spec());
  std::vector<Ip> far_gids = gids_of(far_.port->spec());
  if (spec_.gid >= near_gids.size() || spec_.gid >= far_gids.size()) {
    return errorf(EINVAL, "gid={} is empty at an end", spec_.gid);
  }
  uint32_t most = std::min(near_.port->mtu(), far_.port->mtu());
  uint32_t mtu = spec_.mtu ? spec_.mtu : most;
  if (spec_.op == FlowOp::kUd && spec_.size > std::min(mtu, most)) {
    return errorf(EINVAL, "size={}: a datagram holds at most the MTU, {} bytes", spec_.size,
                  std::min(mtu, most));
  }
  QpAttributes attributes;
  attributes.path_mtu = mtu;
  attributes.timeout = spec_.timeout;
  attributes.retry_count = spec_.retry;
  attributes.window = spec_.window;
  attributes.access = kRemoteWrite | kRemoteRead | kRemoteAtomic;
  attributes.qkey = FlowPlan::kQkey;
  // Initial PSNs as a connection manager would draw them; the same in every run of a seed.
  uint64_t draw = mix64(fabric_.seed() ^ fnv1a64(spec_.name) ^ index);
  uint32_t near_psn = draw & 0xffffff, far_psn = (draw >> 24) & 0xffffff;
  pair.path.local = near_gids[spec_.gid];
  pair.path.remote = far_gids[spec_.gid];
  attributes.port = far_.port->number();
  attributes.remote_qpn = pair.near->number();
  attributes.path.local = pair.path.remote;
  attributes.path.remote = pair.path.local;
  attributes.send_psn = far_psn;
  attributes.receive_psn = near_psn;
  if (Result<void> up = pair.far->bring_up(attributes); !up) return up;
  attributes.port = near_.port->number();
  attributes.remote_qpn = pair.far->number();
  attributes.path = pair.path;
  std::swap(attributes.send_psn, attributes.receive_psn);
  return pair.near->bring_up(attributes);
}

std::shared_ptr<LocalMemory> Flow::fresh_memory(uint64_t bytes) const {
  return spec_.verify ? LocalMemory::create(bytes) : LocalMemory::create_blank(bytes);
}

void Flow::post_receives(uint32_t index) {
  if (!sends()) return;
  Pair& pair = pairs_[index];
  uint64_t wanted = unreliable() ? ~uint64_t{0} : plan_.messages_of(index);
  uint64_t done = unreliable() ? pair.received : pair.completed;
  while (pair.receives < wanted && pair.receives < done + plan_.depth) {
    FlowPlan::Slot at = plan_.receive_slot(index, pair.receives);
    ReceiveRequest request;
    request.wr_id = index;
    request.sges = Sge{far_.address + at.offset, at.length, far_.key};
    if (!pair.far->post(request)) return;
    ++pair.receives;
  }
}

SendRequest Flow::request_of(uint32_t index, uint64_t position) const {
  const Pair& pair = pairs_[index];
  FlowPlan::Target target{near_.address, near_.key, far_.address,
                          far_.key,      pair.path, pair.far->number()};
  return plan_.request(index, position, target);
}

void Flow::post_more(uint32_t index) {
  Pair& pair = pairs_[index];
  while (pair.posted < plan_.messages_of(index) && pair.posted < pair.completed + plan_.depth) {
    bool made_up = spec_.verify && !input_ && spec_.op != FlowOp::kAtomic;
    if (made_up) {
      FlowPlan::Slot at = plan_.slot(index, pair.posted);
      pattern_.stamp(source().memory->bytes().subspan(at.offset, at.length),
                     plan_.message_index(index, pair.posted));
    }
    if (!pair.near->post(request_of(index, pair.posted))) return;
    ++pair.posted;
  }
}

void Flow::on_completions(TimeNs now) {
  std::array<Completion, 32> batch;
  while (size_t taken = receive_cq_.poll(batch)) {
    for (size_t i = 0; i < taken; ++i) {
      if (!take_receive(batch[i])) break;  // the sender's end tells why
    }
  }
  while (size_t taken = send_cq_.poll(batch)) {
    for (size_t i = 0; i < taken; ++i) {
      if (!take_send(batch[i])) {
        return finish(now, Error{EIO, std::string(name(batch[i].status))});
      }
    }
  }
  if (stats_->messages.get() == plan_.count) finish(now, {});
}

// What arrives on an unreliable service is held against what was sent; the rest was lost.
bool Flow::take_receive(const Completion& completion) {
  if (completion.status != WcStatus::kSuccess) return false;
  if (!unreliable()) return true;
  auto index = static_cast<uint32_t>(completion.wr_id);
  Pair& pair = pairs_[index];
  FlowPlan::Slot at = plan_.receive_slot(index, pair.received++);
  uint32_t skip = spec_.op == FlowOp::kUd ? kGrhLen : 0;
  const uint8_t* bytes = far_.memory->bytes().data() + at.offset + skip;
  bool whole = completion.byte_len == spec_.size + skip &&
               (!spec_.verify || pattern_.stamped({bytes, spec_.size}, completion.immediate));
  if (!whole) stats_->mismatched.add();
  stats_->received.add();
  stats_->bytes.add(completion.byte_len - skip);
  post_receives(index);
  return true;
}

bool Flow::take_send(const Completion& completion) {
  if (completion.status != WcStatus::kSuccess) return false;
  auto index = static_cast<uint32_t>(completion.wr_id);
  Pair& pair = pairs_[index];
  if (!unreliable()) verify(plan_.slot(index, pair.completed));
  stats_->messages.add();
  ++pair.completed;
  account(pair);
  post_receives(index);
  post_more(index);
  return true;
}

// No work request completes before its last byte is placed: at this moment both ends are equal.
void Flow::verify(const FlowPlan::Slot& at) {
  const uint8_t* near = near_.memory->bytes().data() + at.offset;
  const uint8_t* far = far_.memory->bytes().data() + at.offset;
  if (spec_.op == FlowOp::kAtomic) {
    uint64_t original = 0;
    std::memcpy(&original, near, sizeof original);
    originals_ += original;
  } else if (spec_.verify && at.length > 0 && std::memcmp(near, far, at.length) != 0) {
    stats_->mismatched.add();
  }
  stats_->bytes.add(at.length);
  stats_->received.add();
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
  if (!pair.far) return;
  uint64_t cnps = pair.near->congestion().cnps() + pair.far->congestion().cnps();
  stats_->cnps.add(cnps - std::exchange(pair.cnps, cnps));
}

void Flow::finish(TimeNs now, Result<void> result) {
  stats_->ended_ns.set(static_cast<uint64_t>(now));
  if (result && spec_.op == FlowOp::kAtomic) {
    // Each addition happened once: they found 0, 1, … count - 1, and left count.
    uint64_t left = 0;
    std::memcpy(&left, far_.memory->bytes().data(), sizeof left);
    bool once = left == plan_.count && originals_ == plan_.originals();
    if (!once) stats_->mismatched.add();
  }
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
    if (end->key) (void)end->device->memory().remove(end->key);
    end->key = 0;
  }
}

}  // namespace rocefs
