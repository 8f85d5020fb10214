#include "core/tree/knob_transaction.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <unordered_map>
#include <utility>

namespace rocefs {

// Consequences may have consequences. Each knob changes once, so this ends.
KnobTransaction::KnobTransaction(std::vector<KnobChange> changes) : changes_(std::move(changes)) {
  causes_.resize(changes_.size());
  std::iota(causes_.begin(), causes_.end(), 0);
  std::set<std::pair<const KnobSet*, size_t>> changed;  // filled at the first consequence
  for (size_t i = 0; i < changes_.size(); ++i) {
    const auto& known = changes_[i].set->consequences_;
    auto consequences = known.find(changes_[i].index);
    if (consequences == known.end()) continue;
    if (changed.empty()) {
      for (const KnobChange& change : changes_) changed.emplace(change.set.get(), change.index);
    }
    for (KnobChange& change : consequences->second(changes_[i].value)) {
      if (!changed.emplace(change.set.get(), change.index).second) continue;
      changes_.push_back(std::move(change));
      causes_.push_back(causes_[i]);
    }
  }
}

Error KnobTransaction::refuse(size_t change, const Error& why) {
  refused_ = causes_[change];
  const std::string& path = changes_[change].path;
  return path.empty() ? why : errorf(why.code, "{}: {}", path, why.reason);
}

Result<void> KnobTransaction::ask_guards() {
  for (size_t i = 0; i < changes_.size() && causes_[i] == i; ++i) {
    const auto& guards = changes_[i].set->guards_;
    const auto guard = guards.find(changes_[i].index);
    if (guard == guards.end()) continue;
    if (Result<void> free = guard->second(); !free) return refuse(i, free.error());
  }
  return {};
}

Result<void> KnobTransaction::check() {
  proposals_.clear();
  std::unordered_map<const KnobSet*, size_t> indices;  // in proposals_
  for (size_t i = 0; i < changes_.size(); ++i) {
    KnobChange& change = changes_[i];
    auto [index, added] = indices.try_emplace(change.set.get(), proposals_.size());
    if (added) proposals_.push_back({change.set.get(), change.set->applied_});
    KnobValue& value = proposals_[index->second].values[change.index];
    auto merge = change.set->merges_.find(change.index);
    if (std::exchange(change.merges, false) && merge != change.set->merges_.end()) {
      Result<KnobValue> merged = merge->second(value, change.value);
      if (!merged) return refuse(i, merged.error());
      change.value = std::move(*merged);
    }
    value = change.value;
  }
  for (const Proposal& proposal : proposals_) {
    if (!proposal.set->owner_) continue;
    Result<void> checked = proposal.set->owner_->check(proposal.values);
    if (checked) continue;
    auto first = std::find_if(changes_.begin(), changes_.end(), [&](const KnobChange& change) {
      return change.set.get() == proposal.set;
    });
    return refuse(static_cast<size_t>(first - changes_.begin()), checked.error());
  }
  return {};
}

void KnobTransaction::apply() {
  for (Proposal& proposal : proposals_) {
    proposal.set->applied_ = std::move(proposal.values);
    if (proposal.set->owner_) proposal.set->owner_->apply(proposal.set->applied_);
  }
  proposals_.clear();
}

void KnobTransaction::publish() {
  std::vector<const KnobChange*> changed;
  for (const KnobChange& change : changes_) {
    if (change.set->publish(change.index, change.value)) changed.push_back(&change);
  }
  for (const KnobChange* change : changed) change->set->announce(change->index);
}

void KnobTransaction::keep_as_defaults() {
  for (const KnobChange& change : changes_) change.set->keep_as_defaults();
}

void store_knobs(Engine& engine, std::vector<KnobChange> changes, Answer<Moment> answer) {
  auto transaction = std::make_shared<KnobTransaction>(std::move(changes));
  engine.call<Moment>(
      [&engine, transaction]() -> Result<Moment> {
        if (Result<void> free = transaction->ask_guards(); !free) return free.error();
        if (Result<void> checked = transaction->check(); !checked) return checked.error();
        transaction->apply();
        return engine.moment();
      },
      [transaction, answer = std::move(answer)](Result<Moment> applied) mutable {
        if (applied) transaction->publish();
        answer(std::move(applied));
      });
}

}  // namespace rocefs
