// Transactions of knobs: several values, possibly of several sets, applied together or not at all,
// in one command between two events.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/assignment.h"
#include "core/base/time.h"
#include "core/tree/knob.h"

namespace rocefs {

// A new value for a knob.
struct KnobChange {
  std::shared_ptr<KnobSet> set;
  size_t index;
  KnobValue value;
  std::string path;     // for the reason of a refusal; empty if the reader knows it
  bool merges = false;  // stored as text: apply the set's Merge, if any
};

class KnobTransaction {
 public:
  // Adds the changes' consequences.
  explicit KnobTransaction(std::vector<KnobChange> changes);

  // Core thread, of stores by users, before check(): asks the guards of the knobs that were given.
  Result<void> ask_guards();
  // Core thread: calls every owner's check() of the final combination of its set.
  Result<void> check();
  // Index of the change that was refused, as given: for a consequence, of its cause; for
  // several of a set that do not go together, the first.
  size_t refused() const { return refused_; }
  // Core thread, after a successful check() and with no other transaction between the two.
  void apply();
  // Control thread, after apply().
  void publish();
  // Control thread, after publish(): makes the present values of all sets that it changes, also as
  // consequences, those that a reset restores.
  void keep_as_defaults();

 private:
  struct Proposal {
    KnobSet* set;
    std::vector<KnobValue> values;
  };

  Error refuse(size_t change, const Error& why);

  std::vector<KnobChange> changes_;
  std::vector<size_t> causes_;  // of changes_: indices of those given
  size_t refused_ = 0;
  std::vector<Proposal> proposals_;  // core thread
};

// Checks, applies and publishes a transaction. Answers its moment in the run; EAGAIN if the
// engine's inbox is full, else the error of the check. Control thread.
void store_knobs(Engine& engine, std::vector<KnobChange> changes, Answer<Moment> answer);

}  // namespace rocefs
