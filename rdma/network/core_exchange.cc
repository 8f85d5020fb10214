#include "rdma/network/core_exchange.h"

#include <algorithm>

namespace rocefs {
namespace {

// Packets taken at once, which a core does twice in a turn of up to eight times as many events. One
// that is late thus delivers at least what it takes: the rest stays with those who send.
constexpr size_t kAtOnce = 32;

}  // namespace

CoreExchange::CoreExchange(PacketCore& core, PacketPool& pool, Counter& stale)
    : core_(core), pool_(pool), stale_(stale) {
  pool_.set_core(core_);
  core_.set_work(*this);
}

Crossings& CoreExchange::way_to(CoreExchange& other) {
  for (const Way& one : ways_) {
    if (one.to == &other) return *one.crossings;
  }
  auto made = std::make_unique<CoreCrossings>(core_, other.core_, pool_, stale_);
  other.here_.push_back(made.get());
  return *ways_.emplace_back(&other, std::move(made)).crossings;
}

// Takes from each way in turn first.
bool CoreExchange::take() {
  pool_.settle();
  for (const Way& one : ways_) one.crossings->resume();
  size_t left = kAtOnce;
  for (size_t i = 0; i < here_.size(); ++i) {
    left -= here_[(first_ + i) % here_.size()]->take(left);
  }
  if (!here_.empty()) first_ = (first_ + 1) % here_.size();
  return left < kAtOnce;
}

bool CoreExchange::has_more() const {
  return !pool_.settled() ||
         std::any_of(here_.begin(), here_.end(), [](const auto* one) { return !one->empty(); }) ||
         std::any_of(ways_.begin(), ways_.end(),
                     [](const Way& one) { return one.crossings->can_resume(); });
}

TimeNs CoreExchange::first_left() const {
  TimeNs first = kNever;
  for (const CoreCrossings* one : here_) first = std::min(first, one->first_left());
  return first;
}

void CoreExchange::reset() {
  for (const Way& one : ways_) one.crossings->clear();
}

}  // namespace rocefs
