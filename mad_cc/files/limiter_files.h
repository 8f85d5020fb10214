// LimiterFiles: mad_sa_cc/<port>/ of every device: the limits of its SA requests and their
// counters.
//
// Source: the vendor's MAD congestion control text; features M1, M2, M7 to M10. The files
// outstanding, queued, sent and expired are additions of rocefs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/tree/knob.h"
#include "core/tree/knob_transaction.h"
#include "mad_cc/files/sa_files.h"
#include "mad_cc/port/mad_port.h"

namespace rocefs {

inline constexpr KnobRow kLimiterKnobs[] = {
    {"max_outstanding", KnobType::kUint, 0, 1 << 20, "16", "", "",
     "SA requests (Get and Set of class SubnAdm) of this port that may be sent and not yet over; "
     "more wait. Under sa/semantics doc and ofed4 from 1 on; under ofed25 of each MAD agent, and 0 "
     "is no limit"},
    {"queue_size", KnobType::kUint, 16, 1 << 20, "16", "", "",
     "SA requests of this port (ofed25: of each MAD agent) that may wait; more are refused with "
     "EBUSY, and counted in drops. What waits already stays"},
    {"time_sa_mad", KnobType::kUint, 0, 10'000, "20", "", "ms",
     "doc: how long an SA request may wait, from 1 on; then its sender sees a time-out. ofed4: how "
     "much of its time-outs, retries included, remains when it has waited as long as it may. "
     "ofed25: what all its tries together wait for an answer, instead of its own time-outs; 0: "
     "those. Counts for requests that come after the store"},
    // Knob without a file: a copy of sa/semantics, so that one check() sees both.
    {"semantics", KnobType::kWord, 0, 0, "doc", kMadSemanticsWords, "", "as sa/semantics"},
};

// Control thread.
class LimiterFiles {
 public:
  // `sa` are the knobs of SaFiles: a store of semantics resets every port's values to its defaults.
  // The arguments outlive LimiterFiles, which outlives the engine's thread.
  LimiterFiles(Tree& tree, Engine& engine, std::shared_ptr<KnobSet> sa);
  ~LimiterFiles();

  // Adds <device>/mad_sa_cc/<number> when the device of a port is bound. The limiter starts with
  // the defaults of the current semantics. `port` outlives LimiterFiles.
  void bind(const std::string& device, unsigned number, MadPort& port);
  // Removes the directory.
  void unbind(const MadPort& port);

 private:
  struct Limits;

  std::vector<KnobChange> consequences(MadSemantics semantics) const;
  void follow();

  Tree& tree_;
  Engine& engine_;
  const std::shared_ptr<KnobSet> sa_;
  std::vector<std::unique_ptr<Limits>> ports_;  // in the order in which they were first bound
  bool following_ = false;                      // a transaction of follow() is under way
};

}  // namespace rocefs
