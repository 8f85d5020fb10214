#include "rdma/fabric/core_crossings.h"

#include <utility>

#include "rdma/fabric/link.h"

namespace rocefs {

void CoreCrossings::add(Link& link, PacketPtr&& packet, TimeNs arrival) {
  if (!share_payload(*packet)) return stale_.add_shared();
  send(link, std::move(packet), arrival);
  if (under_way() >= kMost) stop(link);
}

void CoreCrossings::add(Link& link, const PauseFrame& pause) {
  PacketPtr packet = pool_.acquire();
  packet->header_len = 0;
  packet->header[0] = pause.priority;
  packet->header[1] = pause.pause;
  send(link, std::move(packet), pause.arrival);
}

void CoreCrossings::send(Link& link, PacketPtr&& packet, TimeNs arrival) {
  packet->payload.link = &link;
  packet->arrival = arrival;
  ++sent_;
  mail_.push(std::move(packet));
  to_.nudge();
}

// The receiver takes, and then looks whether room is wanted.
void CoreCrossings::stop(Link& link) {
  link.hold();
  stopped_.push_back(&link);
  room_wanted_.store(true, std::memory_order_seq_cst);
}

void CoreCrossings::release() {
  room_wanted_.store(false, std::memory_order_relaxed);
  for (Link* link : std::exchange(stopped_, {})) link->go_on();
}

size_t CoreCrossings::take(size_t most) {
  size_t count = 0;
  for (; count < most; ++count) {
    PacketPtr packet = mail_.pop();
    if (!packet) break;
    Link& link = *packet->payload.link;
    link.take(std::move(packet));
  }
  if (count == 0) return 0;
  taken_.store(taken_.load(std::memory_order_relaxed) + count, std::memory_order_seq_cst);
  if (room_wanted_.load(std::memory_order_seq_cst)) from_.nudge();
  return count;
}

template <class Wanted>
void CoreCrossings::remove(Wanted wanted, PacketFifo& into) {
  PacketFifo kept;
  while (PacketPtr packet = mail_.pop()) {
    const bool goes = wanted(*packet);
    if (goes) taken_.store(taken_.load(std::memory_order_relaxed) + 1);
    (goes ? into : kept).push(std::move(packet));
  }
  while (PacketPtr packet = kept.pop()) mail_.push(std::move(packet));
}

void CoreCrossings::take_of(const Link& link, PacketFifo& into) {
  drop_pauses(link);
  remove([&](const Packet& packet) { return packet.payload.link == &link; }, into);
}

void CoreCrossings::drop_pauses(const Link& link) {
  PacketFifo pauses;
  remove([&](const Packet& packet) { return packet.payload.link == &link && is_pause(packet); },
         pauses);
}

void CoreCrossings::clear() {
  PacketFifo all;
  remove([](const Packet&) { return true; }, all);
  stopped_.clear();
  room_wanted_.store(false, std::memory_order_relaxed);
}

}  // namespace rocefs
