// LimiterFiles: mad_sa_cc/<port>/ of every device: the limits of its SA requests and their
// counters.
//
// Source: the vendor's MAD congestion control text; features M1, M2, M7 to M10. The files
// outstanding, queued, sent and expired are additions of rocefs.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/tree/knob.h"
#include "core/tree/knob_transaction.h"
#include "mad_cc/files/sa_files.h"
#include "mad_cc/port/mad_port.h"

namespace rocefs {

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

  void add_files(const std::string& directory, const Limits& limits);
  std::vector<KnobChange> consequences(MadSemantics semantics) const;
  void follow();

  Tree& tree_;
  Engine& engine_;
  const std::shared_ptr<KnobSet> sa_;
  std::vector<std::unique_ptr<Limits>> ports_;  // in the order in which they were first bound
  std::unordered_map<const MadPort*, Limits*> by_port_;
  bool following_ = false;  // a transaction of follow() is under way
};

}  // namespace rocefs
