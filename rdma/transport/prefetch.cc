#include "rdma/transport/prefetch.h"

#include <algorithm>
#include <utility>

namespace rocefs {
namespace {

constexpr uint64_t kLump = 256 * 1024;  // bytes asked for at once
constexpr uint64_t kMaxBytes = 4 * kLump;

}  // namespace

Prefetch::~Prefetch() {
  for (uint64_t at = queue_.head(); at != queue_.tail(); ++at) forget(queue_.at(at));
}

bool Prefetch::wants_more() const {
  return queue_.size() + 1 < kMaxPackets && bytes_ < kMaxBytes;
}

bool Prefetch::low() const {
  return bytes_ <= kMaxBytes - kLump;
}

void Prefetch::forget(Entry& entry) {
  if (Packet* packet = std::exchange(entry.packet, nullptr)) pool_.release(packet);
}

void Prefetch::add(Packet* packet, const Key& key, const Moved& moved) {
  bytes_ += packet->payload.length;
  ++pending_;
  queue_.push({packet, key, moved.pending, moved.failed});
}

void Prefetch::done(uint64_t ticket, bool ok) {
  Entry& entry = queue_.at(ticket);
  entry.failed |= !ok;
  if (--entry.pending > 0) return;
  --pending_;
  if (ticket < wanted_) forget(entry);
  while (queue_.head() != wanted_ && queue_.front().pending == 0) queue_.pop();
}

Prefetch::State Prefetch::state(const Key& key) {
  if (empty()) return State::kAbsent;
  const Entry& entry = queue_.at(wanted_);
  if (entry.key != key) return State::kAbsent;
  if (entry.pending > 0) return State::kPending;
  return entry.failed ? State::kFailed : State::kReady;
}

Packet* Prefetch::take() {
  Packet* packet = std::exchange(queue_.at(wanted_).packet, nullptr);
  bytes_ -= packet->payload.length;
  if (queue_.head() == wanted_++) queue_.pop();
  return packet;
}

void Prefetch::drop() {
  for (; wanted_ != queue_.tail(); ++wanted_) {
    Entry& entry = queue_.at(wanted_);
    if (entry.pending == 0) forget(entry);
  }
  bytes_ = 0;
  while (!queue_.empty() && queue_.front().pending == 0) queue_.pop();
}

}  // namespace rocefs
