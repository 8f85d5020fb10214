// FlowResult: a flow of [flows], as its files in traffic/ tell of it.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "rdma/traffic/flow_spec.h"
#include "tools/rocefs/sim/flow_record.h"

namespace rocefs {

struct FlowResult {
  FlowSpec spec;
  TimeNs start = 0;
  double ideal_ns = 0;
  // Content of traffic/NAME/state, or "not started", "removed", "lost: N of M messages arrived".
  std::string state;
  std::map<std::string, std::string> result;  // content of traffic/NAME/result
  bool done() const { return state == "done"; }
  bool lost() const { return state.starts_with("lost"); }
  // Makes "lost" of "done" where messages of an unreliable service have not arrived.
  void note_loss();
  // Value of a line of `result`; 0 without such a line.
  double number(const std::string& key) const;
  // Valid as long as the result.
  FlowRecord record() const;
  // Defined for a flow that is done.
  double fct_ns() const { return number("elapsed_ns"); }
  double slowdown() const { return ideal_ns > 0 ? fct_ns() / ideal_ns : 0; }
};

}  // namespace rocefs
