#include "rdma/uplink/udp_sender.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "rdma/uplink/icmp_errors.h"
#include "rdma/wire/ip_text.h"

namespace rocefs {

UdpSender::UdpSender(Parts parts)
    : parts_(std::move(parts)),
      sockets_(UdpSockets::most_allowed(), parts_.warn),
      batches_(std::make_unique<UdpBatch[]>(kSends)),
      look_(event_of<&UdpSender::look>(this)) {
  for (size_t i = kSends; i-- > 0;) {
    batches_[i].set_sender(*this);
    free_.push_back(&batches_[i]);
  }
}

void UdpSender::reset() {
  parts_.scheduler.cancel(look_);
  for (UdpBatch* batch : open_) {
    batch->drop();
    batch->socket()->batch = nullptr;
    --batch->socket()->under_way;
    free_.push_back(batch);
  }
  open_.clear();
  for (auto& [from, flow] : flows_) {
    flow.returned.clear();
    flow.waiting.clear();
  }
  std::erase_if(flows_, [](const auto& one) { return !one.second.socket; });
  ready_.clear();
  waiting_count_ = 0;
}

void UdpSender::set_gso(bool wanted) {
  settle();
  gso_ = wanted;
  sockets_.set_checksums(wanted);
}

void UdpSender::send(PacketPtr&& packet, TimeNs now) {
  bool others_wait = !flows_.empty() && flows_.contains(source_of(*packet));
  if (!others_wait) {
    Outcome outcome = hand_over(packet, now);
    if (outcome == Outcome::kTaken) return;
    Flow& flow = flow_of(*packet);
    outcome == Outcome::kNoRoom ? hold(flow, sockets_.found()) : ready_.push_back(&flow);
  }
  flow_of(*packet).waiting.push(std::move(packet));
  if (++waiting_count_ >= kWaiting) parts_.full(true);
}

UdpSender::Outcome UdpSender::lost_socket(PacketPtr& packet, const UdpAddress& from, int error) {
  report(parts_.counters.tx_no_socket,
         fmt::format("cannot send from {}, UDP port {}: {}", ip_text(from.ip), from.port,
                     std::strerror(error)));
  packet.reset();
  return Outcome::kTaken;
}

UdpSender::Outcome UdpSender::hand_over(PacketPtr& packet, TimeNs now) {
  UdpAddress from = source_of(*packet);
  int fd = sockets_.find(from, now);
  if (fd == -EBUSY) return Outcome::kNoSlot;
  if (fd < 0) return lost_socket(packet, from, -fd);
  UdpSocket& socket = sockets_.found();
  size_t octets = packet->wire_length();
  bool joins = gso_ && may_join(*packet);
  if (open_.size() > (socket.batch ? 1 : 0)) let_pass(*packet, socket.batch);
  if (UdpBatch* batch = socket.batch) {
    if (joins && batch->takes(*packet)) {
      if (!batch->add(std::move(packet))) return lost_payload();
      socket.room.add(octets);
      if (batch->closed()) submit(*batch);
      return Outcome::kTaken;
    }
    submit(*batch);
  }
  if (free_.empty()) return Outcome::kNoSlot;
  if (!socket.room.take(fd, octets, [this] { settle(); })) return Outcome::kNoRoom;
  UdpBatch& batch = *free_.back();
  batch.begin(socket, *packet);
  if (joins) {
    if (!batch.add(std::move(packet))) return lost_payload();
  } else {
    if (!packet->sealed) set_ip_id(*packet, 0);
    if (!materialize(*packet)) {
      packet.reset();
      return lost_payload();
    }
    batch.add_sealed(std::move(packet));
  }
  free_.pop_back();
  ++socket.under_way;
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

// Counts a packet that was dropped because its payload has gone.
UdpSender::Outcome UdpSender::lost_payload() {
  parts_.stale.add_shared();
  return Outcome::kTaken;
}

void UdpSender::open(UdpBatch& batch) {
  batch.socket()->batch = &batch;
  batch.place = open_.size();
  open_.push_back(&batch);
  batch.looked_at = batch.size();
  if (!look_.scheduled()) parts_.scheduler.at(look_, parts_.clock());
}

// A batch of another socket than `own` is sent first if it has packets for the same queue pair.
void UdpSender::let_pass(const Packet& packet, const UdpBatch* own) {
  for (size_t i = open_.size(); i-- > 0;) {
    if (open_[i] != own && open_[i]->precedes(packet)) submit(*open_[i]);
  }
}

void UdpSender::submit(UdpBatch& batch) {
  UdpSocket& socket = *batch.socket();
  if (std::exchange(socket.batch, nullptr)) {
    open_.back()->place = batch.place;
    open_[batch.place] = open_.back();
    open_.pop_back();
  }
  parts_.io.send_message(socket.fd.get(), batch.message(), batch);
}

// Keeps a batch that has grown since the last look open.
void UdpSender::look(TimeNs) {
  for (size_t i = open_.size(); i-- > 0;) {
    UdpBatch& batch = *open_[i];
    if (std::exchange(batch.looked_at, batch.size()) == batch.size()) submit(batch);
  }
  if (!open_.empty()) parts_.scheduler.at(look_, parts_.clock());
}

void UdpSender::flush() {
  while (!open_.empty()) submit(*open_.back());
}

// Hands all open batches to the kernel.
void UdpSender::settle() {
  flush();
  parts_.io.submit();
}

void UdpSender::sent(UdpBatch& batch, int result) {
  UdpSocket& socket = *batch.socket();
  bool no_room = result == -EAGAIN;
  // ICMP reports a port without receiver to a later send, which fails with ECONNREFUSED.
  bool earlier = result < 0 && !no_room && hear_icmp(socket.fd.get());
  bool again = no_room || earlier || result == -ECONNREFUSED ||
               (batch.size() > 1 && refused(batch, -result));
  if (again) {
    take_back(batch, no_room);
  } else {
    if (result >= 0) count(batch);
    batch.hand_back([&](PacketPtr packet) {
      if (result < 0) fail(-result, *packet);
    });
  }
  --socket.under_way;
  free_.push_back(&batch);
  serve();
  if (waiting_count_ <= kWaiting / 2) parts_.full(false);
}

void UdpSender::count(const UdpBatch& batch) {
  UplinkCounters& counters = parts_.counters;
  counters.tx_packets.add(batch.size());
  for (const PacketPtr& packet : batch.packets()) counters.tx_bytes.add(packet->wire_length());
  if (batch.size() == 1) return;
  counters.tx_batches.add();
  counters.tx_batched.add(batch.size());
}

// Whether the kernel refuses the batch, though it may accept its packets: a device or a tunnel on
// the path does not support it.
bool UdpSender::refused(const UdpBatch& batch, int code) {
  constexpr TimeNs kAvoided = 10 * kSecond;
  constexpr size_t kMaxSingles = 64;
  if (code != EINVAL && code != EIO && code != EOPNOTSUPP && code != EMSGSIZE) return false;
  const Ip& to = batch.destination().ip;
  std::erase_if(singles_, [&](const auto& one) { return one.first == to; });
  if (singles_.size() >= kMaxSingles) singles_.erase(singles_.begin());
  singles_.emplace_back(to, parts_.scheduler.now() + kAvoided);
  report(parts_.counters.tx_batches_refused,
         fmt::format("cannot send batches to {}, so single packets for a while: {}", ip_text(to),
                     std::strerror(code)));
  return true;
}

// Queues the batch's packets again, before later ones; they may leave in another way.
void UdpSender::take_back(UdpBatch& batch, bool no_room) {
  Flow& flow = flow_of(*batch.packets()[0]);
  waiting_count_ += batch.size();
  batch.hand_back([&](PacketPtr packet) { flow.returned.push(std::move(packet)); });
  if (flow.socket) return;
  if (no_room) return hold(flow, *batch.socket());
  if (std::find(ready_.begin(), ready_.end(), &flow) == ready_.end()) ready_.push_back(&flow);
}

UdpSender::Flow& UdpSender::flow_of(const Packet& packet) {
  UdpAddress from = source_of(packet);
  Flow& flow = flows_[from];
  flow.owner = this;
  flow.from = from;
  return flow;
}

void UdpSender::hold(Flow& flow, UdpSocket& socket) {
  flow.socket = &socket;
  ++socket.under_way;
  std::erase(ready_, &flow);
  parts_.io.await_room(socket.fd.get(), flow);
}

void UdpSender::has_room(Flow& flow) {
  --std::exchange(flow.socket, nullptr)->under_way;
  if (flow.empty()) {
    flows_.erase(UdpAddress(flow.from));
  } else {
    ready_.push_back(&flow);
  }
  serve();
}

void UdpSender::serve() {
  TimeNs now = parts_.scheduler.now();
  while (!ready_.empty() && !free_.empty()) {
    Flow& flow = *ready_.front();
    ready_.pop_front();
    if (!serve(flow, now)) return;
  }
}

// After a failed send: whether ICMP has reported an earlier datagram, so that this send is to be
// repeated.
bool UdpSender::hear_icmp(int fd) {
  IcmpErrors told = take_icmp_errors(fd);
  UplinkCounters& counters = parts_.counters;
  std::string why = fmt::format("a packet to {} came back: {}", ip_text(told.to), told.why);
  report(counters.icmp_refused, why, told.refused);
  report(counters.icmp_unreachable, why, told.unreachable);
  report(counters.icmp_too_long, why, told.too_long);
  return told.any();
}

// Serves a turn of a flow that is not in ready_. False if no flow can be served now.
bool UdpSender::serve(Flow& flow, TimeNs now) {
  constexpr size_t kTurn = 16;
  for (size_t i = 0; i < kTurn && !flow.empty(); ++i) {
    PacketFifo& first = flow.returned.empty() ? flow.waiting : flow.returned;
    PacketPtr packet = first.pop();
    Outcome outcome = hand_over(packet, now);
    if (outcome == Outcome::kTaken) {
      --waiting_count_;
      continue;
    }
    first.push_front(std::move(packet));
    if (outcome == Outcome::kNoRoom) {
      hold(flow, sockets_.found());
      return true;
    }
    ready_.push_front(&flow);
    return false;
  }
  if (flow.empty()) {
    flows_.erase(UdpAddress(flow.from));
  } else {
    ready_.push_back(&flow);
  }
  return true;
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

void UdpSender::report(Counter& kind, const std::string& why, uint64_t count) {
  constexpr TimeNs kQuiet = 10 * kSecond;
  if (count == 0) return;
  kind.add(count);
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
