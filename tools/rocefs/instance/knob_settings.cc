#include "tools/rocefs/instance/knob_settings.h"

#include <cerrno>
#include <utility>

#include "core/tree/knob_file.h"

namespace rocefs {

Result<void> KnobSettings::add(const KnobSetting& setting) {
  Result<std::vector<KnobChange>> changes = knob_changes(tree_, {{setting.path, setting.value}});
  if (!changes) return changes.error();
  for (KnobChange& change : *changes) {
    auto [known, fresh] = places_.try_emplace({change.set.get(), change.index}, changes_.size());
    if (!fresh && !change.set->merges(change.index)) {
      changes_[known->second] = std::move(change);
      settings_[known->second] = &setting;
      continue;
    }
    changes_.push_back(std::move(change));
    settings_.push_back(&setting);
  }
  return {};
}

std::optional<KnobSettings::Refusal> KnobSettings::check(KnobTransaction& transaction) const {
  Result<void> checked = transaction.check();
  if (checked) return std::nullopt;
  return Refusal{settings_[transaction.refused()], checked.error().reason};
}

std::optional<KnobSettings::Refusal> KnobSettings::check() {
  KnobTransaction transaction(std::move(changes_));
  return check(transaction);
}

std::optional<KnobSettings::Refusal> KnobSettings::store() {
  KnobTransaction transaction(std::move(changes_));
  if (std::optional<Refusal> refusal = check(transaction)) return refusal;
  transaction.apply();
  transaction.publish();
  transaction.keep_as_defaults();
  return std::nullopt;
}

}  // namespace rocefs
