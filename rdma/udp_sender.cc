#include "rdma/udp_sender.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "rdma/ip_text.h"

namespace rocefs {

UdpSender::UdpSender(Parts parts)
    : parts_(std::move(parts)),
      sockets_(UdpSockets::most_allowed(), [this] { settle(); }),
      batches_(std::make_unique<UdpBatch[]>(kSends)),
      flush_(event_of<&UdpSender::flush>(this)) {
  for (size_t i = kSends; i-- > 0;) {
    batches_[i].set_owner(*this);
    free_.push_back(&batches_[i]);
  }
}

UdpSender::~UdpSender() {
  reset();
  for (size_t i = 0; i < kSends; ++i) {
    for (Packet* packet : batches_[i].packets()) parts_.pool.release(packet);
  }
}

void UdpSender::reset() {
  parts_.scheduler.cancel(flush_);
  for (UdpBatch* batch : open_) {
    for (Packet* packet : batch->packets()) parts_.pool.release(packet);
    batch->socket()->batch = nullptr;
    batch->forget();
    free_.push_back(batch);
  }
  open_.clear();
  for (auto& [from, flow] : flows_) {
    while (Packet* packet = flow.returned.pop()) parts_.pool.release(packet);
    while (Packet* packet = flow.waiting.pop()) parts_.pool.release(packet);
  }
  std::erase_if(flows_, [](const auto& one) { return !one.second.held; });
  ready_.clear();
  waiting_count_ = 0;
}

void UdpSender::set_gso(bool wanted) {
  settle();
  gso_ = wanted;
  sockets_.set_checksums(wanted);
}

void UdpSender::send(Packet* packet, TimeNs now) {
  bool others_wait = !flows_.empty() && flows_.contains(source_of(*packet));
  if (!others_wait) {
    Outcome outcome = hand_over(packet, now);
    if (outcome == Outcome::kTaken) return;
    Flow& flow = flow_of(*packet);
    outcome == Outcome::kNoRoom ? hold(flow, sockets_.found().fd.get()) : ready_.push_back(&flow);
  }
  flow_of(*packet).waiting.push(packet);
  if (++waiting_count_ >= kWaiting) parts_.full(true);
}

UdpSender::Outcome UdpSender::hand_over(Packet* packet, TimeNs now) {
  UdpAddress from = source_of(*packet);
  int fd = sockets_.find(from, now);
  if (fd < 0) {
    report(parts_.counters.tx_no_socket,
           fmt::format("cannot send from {}, UDP port {}: {}", ip_text(from.ip), from.port,
                       std::strerror(-fd)));
    parts_.pool.release(packet);
    return Outcome::kTaken;
  }
  UdpSocket& socket = sockets_.found();
  size_t octets = packet->wire_length();
  bool joins = gso_ && may_join(*packet);
  if (UdpBatch* batch = socket.batch) {
    if (joins && batch->takes(*packet)) {
      if (!seal(packet, static_cast<uint16_t>(batch->size()))) return Outcome::kTaken;
      batch->add(packet);
      socket.room.add(octets);
      if (batch->closed()) submit(*batch);
      return Outcome::kTaken;
    }
    submit(*batch);
  }
  if (free_.empty()) return Outcome::kNoSlot;
  if (!socket.room.take(fd, octets, [this] { settle(); })) return Outcome::kNoRoom;
  if (!seal(packet, 0)) return Outcome::kTaken;
  UdpBatch& batch = *free_.back();
  free_.pop_back();
  batch.begin(socket, *packet);
  batch.add(packet);
  joins ? open(batch) : submit(batch);
  return Outcome::kTaken;
}

bool UdpSender::may_join(const Packet& packet) const {
  if (packet.sealed) return false;
  if (singles_.empty()) return true;
  Ip to = destination_of(packet).ip;
  TimeNs now = parts_.scheduler.now();
  return std::none_of(singles_.begin(), singles_.end(),
                      [&](const auto& one) { return one.first == to && now < one.second; });
}

// False if its payload has gone, and the packet with it.
bool UdpSender::seal(Packet* packet, uint16_t ip_id) {
  if (!packet->sealed) set_ip_id(*packet, ip_id);
  if (materialize(parts_.pool, packet)) return true;
  parts_.stale.add();
  parts_.pool.release(packet);
  return false;
}

void UdpSender::open(UdpBatch& batch) {
  batch.socket()->batch = &batch;
  batch.place = open_.size();
  open_.push_back(&batch);
  if (!flush_.scheduled()) parts_.scheduler.at(flush_, parts_.clock());
}

void UdpSender::submit(UdpBatch& batch) {
  UdpSocket& socket = *batch.socket();
  if (std::exchange(socket.batch, nullptr)) {
    open_.back()->place = batch.place;
    open_[batch.place] = open_.back();
    open_.pop_back();
  }
  parts_.ring.send_message(socket.fd.get(), batch.message(), batch);
}

void UdpSender::flush(TimeNs) {
  while (!open_.empty()) submit(*open_.back());
}

// The kernel has all that was handed over.
void UdpSender::settle() {
  flush(parts_.scheduler.now());
  parts_.ring.submit();
}

void UdpSender::sent(UdpBatch& batch, int result) {
  if (result == -EAGAIN || (batch.size() > 1 && refused(batch, -result))) {
    take_back(batch, result == -EAGAIN);
  } else {
    if (result >= 0) count(batch);
    for (Packet* packet : batch.packets()) {
      if (result < 0) fail(-result, *packet);
      parts_.pool.release(packet);
    }
  }
  batch.forget();
  free_.push_back(&batch);
  serve();
  if (waiting_count_ <= kWaiting / 2) parts_.full(false);
}

void UdpSender::count(const UdpBatch& batch) {
  UplinkCounters& counters = parts_.counters;
  counters.tx_packets.add(batch.size());
  for (const Packet* packet : batch.packets()) counters.tx_bytes.add(packet->wire_length());
  if (batch.size() == 1) return;
  counters.tx_batches.add();
  counters.tx_batched.add(batch.size());
}

// Whether the kernel does not want the batch, though it may want its packets: a device or a tunnel
// on the way does not allow it.
bool UdpSender::refused(const UdpBatch& batch, int code) {
  constexpr TimeNs kAvoided = 10 * kSecond;
  constexpr size_t kMostSingles = 64;
  if (code != EINVAL && code != EIO && code != EOPNOTSUPP && code != EMSGSIZE) return false;
  const Ip& to = batch.destination().ip;
  std::erase_if(singles_, [&](const auto& one) { return one.first == to; });
  if (singles_.size() >= kMostSingles) singles_.erase(singles_.begin());
  singles_.emplace_back(to, parts_.scheduler.now() + kAvoided);
  report(parts_.counters.tx_batches_refused,
         fmt::format("cannot send batches to {}, so single packets for a while: {}", ip_text(to),
                     std::strerror(code)));
  return true;
}

// They go before what came later, and may leave otherwise than they would have.
void UdpSender::take_back(const UdpBatch& batch, bool no_room) {
  Flow& flow = flow_of(*batch.packets()[0]);
  for (Packet* packet : batch.packets()) {
    if (batch.size() > 1) {
      set_ip_id(*packet, 0);
      packet->sealed = false;
    }
    flow.returned.push(packet);
  }
  waiting_count_ += batch.size();
  if (flow.held) return;
  int fd = no_room ? sockets_.find(flow.from, parts_.scheduler.now()) : -1;
  if (fd >= 0) return hold(flow, fd);
  if (std::find(ready_.begin(), ready_.end(), &flow) == ready_.end()) ready_.push_back(&flow);
}

UdpSender::Flow& UdpSender::flow_of(const Packet& packet) {
  UdpAddress from = source_of(packet);
  Flow& flow = flows_[from];
  flow.owner = this;
  flow.from = from;
  return flow;
}

void UdpSender::hold(Flow& flow, int fd) {
  flow.held = true;
  std::erase(ready_, &flow);
  parts_.ring.await_room(fd, flow);
}

void UdpSender::has_room(Flow& flow) {
  flow.held = false;
  if (flow.empty()) {
    flows_.erase(UdpAddress(flow.from));
    return;
  }
  ready_.push_back(&flow);
  serve();
}

void UdpSender::serve() {
  TimeNs now = parts_.scheduler.now();
  while (!ready_.empty() && !free_.empty()) {
    Flow& flow = *ready_.front();
    ready_.pop_front();
    serve(flow, now);
  }
}

// A turn of a flow that is not in ready_.
void UdpSender::serve(Flow& flow, TimeNs now) {
  constexpr size_t kTurn = 16;
  for (size_t i = 0; i < kTurn && !flow.empty(); ++i) {
    PacketFifo& first = flow.returned.empty() ? flow.waiting : flow.returned;
    Packet* packet = first.pop();
    Outcome outcome = hand_over(packet, now);
    if (outcome == Outcome::kTaken) {
      --waiting_count_;
      continue;
    }
    first.push_front(packet);
    if (outcome == Outcome::kNoRoom) return hold(flow, sockets_.found().fd.get());
    return ready_.push_front(&flow);
  }
  if (!flow.empty()) return ready_.push_back(&flow);
  flows_.erase(UdpAddress(flow.from));
}

void UdpSender::fail(int code, const Packet& packet) {
  UplinkCounters& counters = parts_.counters;
  auto kind = [&]() -> Counter& {
    switch (code) {
      case EMSGSIZE:
        return counters.tx_too_long;
      case ENETUNREACH:
      case EHOSTUNREACH:
      case ENETDOWN:
        return counters.tx_unreachable;
      case EPERM:
      case EACCES:
        return counters.tx_refused;
      case ENOBUFS:
      case ENOMEM:
        return counters.tx_no_buffers;
      default:
        return counters.tx_errors;
    }
  };
  report(kind(), fmt::format("cannot send {} octets to {}: {}", packet.wire_length(),
                             ip_text(destination_of(packet).ip), std::strerror(code)));
}

void UdpSender::report(Counter& kind, const std::string& why) {
  constexpr TimeNs kQuiet = 10 * kSecond;
  kind.add();
  auto last = std::find_if(warned_.begin(), warned_.end(),
                           [&](const auto& one) { return one.first == &kind; });
  TimeNs now = parts_.scheduler.now();
  if (last == warned_.end()) {
    warned_.emplace_back(&kind, now);
  } else if (now - last->second < kQuiet) {
    return;
  } else {
    last->second = now;
  }
  parts_.warn(why);
}

}  // namespace rocefs
