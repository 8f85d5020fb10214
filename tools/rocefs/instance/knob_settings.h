// KnobSettings: the knobs of the sections [knobs] and [variant] of an ini file, stored in one
// transaction before the engine starts: rules that span knobs apply to all lines together, in any
// order, and one bad value refuses all.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/config/topology.h"
#include "core/tree/knob_transaction.h"
#include "core/tree/tree.h"

namespace rocefs {

// Control thread, before the engine starts.
class KnobSettings {
 public:
  explicit KnobSettings(Tree& tree) : tree_(tree) {}

  // Adds a line whose path, which may be a pattern, stands for knobs alone; in place of an earlier
  // one for the same knob. `setting` outlives this object. EINVAL, ERANGE.
  Result<void> add(const KnobSetting& setting);

  struct Refusal {
    const KnobSetting* setting;  // whose value is refused; of several that do not go together, one
    std::string why;
  };
  // Whether store() would refuse one. Call one of the two, once.
  std::optional<Refusal> check();
  // Stores all, and makes the values the defaults that a reset restores. Nothing is stored if one
  // is refused.
  std::optional<Refusal> store();

 private:
  std::optional<Refusal> check(KnobTransaction& transaction) const;

  Tree& tree_;
  std::vector<KnobChange> changes_;
  std::vector<const KnobSetting*> settings_;  // of changes_
  std::map<std::pair<const KnobSet*, size_t>, size_t> places_;
};

}  // namespace rocefs
