#include "rdma/transport/prefetch.h"

#include <algorithm>
#include <utility>

namespace rocefs {
namespace {

constexpr uint64_t kLump = 256 * 1024;  // bytes asked for at once
constexpr uint64_t kMaxBytes = 4 * kLump;

}  // namespace

bool Prefetch::wants_more() const {
  return queue_.size() + 1 < kMaxPackets && bytes_ < kMaxBytes;
}

bool Prefetch::low() const {
  return bytes_ <= kMaxBytes - kLump;
}

void Prefetch::add(PacketPtr&& packet, const Key& key, const Moved& moved) {
  bytes_ += packet->payload.length;
  ++pending_;
  queue_.push({std::move(packet), key, moved.pending, moved.failed});
}

void Prefetch::done(uint64_t ticket, bool ok) {
  Entry& entry = queue_.at(ticket);
  entry.failed |= !ok;
  if (--entry.pending > 0) return;
  --pending_;
  if (ticket < wanted_) entry.packet.reset();
  while (queue_.head() != wanted_ && queue_.front().pending == 0) queue_.pop();
}

Prefetch::State Prefetch::state(const Key& key) {
  if (empty()) return State::kAbsent;
  const Entry& entry = queue_.at(wanted_);
  if (entry.key != key) return State::kAbsent;
  if (entry.pending > 0) return State::kPending;
  return entry.failed ? State::kFailed : State::kReady;
}

PacketPtr Prefetch::take() {
  PacketPtr packet = std::move(queue_.at(wanted_).packet);
  bytes_ -= packet->payload.length;
  if (queue_.head() == wanted_++) queue_.pop();
  return packet;
}

void Prefetch::drop() {
  for (; wanted_ != queue_.tail(); ++wanted_) {
    Entry& entry = queue_.at(wanted_);
    if (entry.pending == 0) entry.packet.reset();
  }
  bytes_ = 0;
  while (!queue_.empty() && queue_.front().pending == 0) queue_.pop();
}

}  // namespace rocefs
