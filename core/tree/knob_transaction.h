// Transactions of knobs: several values, perhaps of several sets, applied together or not at all,
// in one command between two events.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/assignment.h"
#include "core/base/time.h"
#include "core/tree/knob.h"

namespace rocefs {

// One value on its way to one knob.
struct KnobChange {
  std::shared_ptr<KnobSet> set;
  size_t index;
  KnobValue value;
  std::string path;     // for the reason of a refusal; empty where the reader knows it
  bool merges = false;  // it was stored as text: the set's Merge, if there is one, is asked
};

class KnobTransaction {
 public:
  // The changes, and their consequences.
  explicit KnobTransaction(std::vector<KnobChange> changes);

  // Core thread: every owner's check of the final combination of its set.
  Result<void> check();
  // Core thread, after a check() that went well and with no other transaction between the two.
  void apply();
  // Control thread, after apply().
  void publish();

 private:
  struct Proposal {
    KnobSet* set;
    std::vector<KnobValue> values;
  };

  bool changes(const KnobSet& set, size_t index) const;

  std::vector<KnobChange> changes_;
  std::vector<Proposal> proposals_;  // core thread
};

// A transaction from check to publication. Answers where in the run it was applied; EAGAIN when the
// engine is flooded, else what the check said. Control thread.
void store_knobs(Engine& engine, std::vector<KnobChange> changes, Answer<Moment> answer);

}  // namespace rocefs
