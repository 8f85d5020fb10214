#include "rdma/client/copier.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>

namespace rocefs {
namespace {

constexpr uint64_t kWorthWaking = 64 * 1024;  // bytes
constexpr uint64_t kWorthAsking = 32 * 1024;  // while it is awake

uint32_t load(uint32_t& word) {
  return std::atomic_ref(word).load();
}

}  // namespace

Copier::Copier(std::shared_ptr<SharedMemory> memory)
    : memory_(std::move(memory)), page_(memory_->at<rocefs_copier_page>(0)) {}

uint8_t* Copier::slot(uint32_t number) const {
  size_t index = number % ROCEFS_COPIER_SLOTS;
  return memory_->data() + sizeof(rocefs_copier_page) + index * ROCEFS_COPIER_SLOT;
}

bool Copier::has_room(uint64_t length) const {
  auto whole = static_cast<uint32_t>((length + ROCEFS_COPIER_SLOT - 1) / ROCEFS_COPIER_SLOT);
  uint32_t pieces = std::max(whole, 1u);  // an empty move has a piece, too
  if (length > kMaxBytes || next_ - oldest_ + pieces > ROCEFS_COPIER_SLOTS) return false;
  // A cancelled slot is free once the client has seen it.
  for (uint32_t i = 0; i < pieces; ++i) {
    if (load(copy(next_ + i).state) != ROCEFS_COPY_FREE) return false;
  }
  return true;
}

bool Copier::suits(uint64_t bytes) const {
  // The client frees slots in order.
  bool cleared = load(copy(next_ - 1).state) == ROCEFS_COPY_FREE;
  if (ended_ || !cleared || load(copy(next_).state) != ROCEFS_COPY_FREE) return false;
  return bytes >= (load(page_->bored) != 0 ? kWorthWaking : kWorthAsking);
}

void Copier::post(const Move& move) {
  PartWalk walk(move.here);
  uint64_t done = 0;
  do {  // an empty move is a copy, too: each move ends once
    auto some = static_cast<uint32_t>(std::min<uint64_t>(move.length - done, ROCEFS_COPIER_SLOT));
    posted_[next_ % ROCEFS_COPIER_SLOTS] = {walk, some, move.out, done + some == move.length};
    if (move.out) {
      walk.copy(true, slot(next_), some);
    } else {
      walk.skip(some);
    }
    rocefs_copy& copy = this->copy(next_);
    copy.writes = move.out ? 1 : 0;
    copy.address = move.address + done;
    copy.length = some;
    std::atomic_ref(copy.state).store(ROCEFS_COPY_POSTED, std::memory_order_release);
    ++next_;
    done += some;
  } while (done < move.length);
  std::atomic_ref(page_->posted).fetch_add(1);
  if (load(page_->bored) == 0) return;
  ::syscall(SYS_futex, &page_->posted, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

bool Copier::is_open(uint32_t number) const {
  uint32_t state = load(copy(number).state);
  return !ended_ && (state == ROCEFS_COPY_POSTED || state == ROCEFS_COPY_TAKEN);
}

std::optional<bool> Copier::take() {
  while (has_ended()) {
    bool last = posted_[oldest_ % ROCEFS_COPIER_SLOTS].last;
    collect();
    if (last) return std::exchange(well_, true);
  }
  return std::nullopt;
}

// Collects the oldest copy, which has ended.
void Copier::collect() {
  Posted& what = posted_[oldest_ % ROCEFS_COPIER_SLOTS];
  std::atomic_ref state(copy(oldest_).state);
  uint32_t how = state.load();
  bool done = how == ROCEFS_COPY_DONE && !ended_;
  if (done && !what.out) what.here.copy(false, slot(oldest_), what.length);
  well_ &= done;
  if (how == ROCEFS_COPY_DONE || how == ROCEFS_COPY_FAILED) state.store(ROCEFS_COPY_FREE);
  ++oldest_;
}

// Cancels the newest first: the client then takes none while an older one is pending.
void Copier::cancel_late() {
  bool late = busy() && oldest_ == looked_;
  looked_ = oldest_;
  for (uint32_t number = next_; late && number != oldest_;) {
    uint32_t expected = ROCEFS_COPY_POSTED;
    std::atomic_ref(copy(--number).state).compare_exchange_strong(expected, ROCEFS_COPY_CANCELLED);
  }
}

}  // namespace rocefs
