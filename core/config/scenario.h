// Scenario: the sections of the ini file that describe a run. `rocefs sim` runs it; a mount reads
// it, so that one file serves both, and starts nothing of it.
//
//   [sim]           title=TEXT, capture=yes|no, until=TIME (else: until all flows have ended),
//                   limit=TIME (10s: flows that still run then are a failure)
//   [flows]         NAME = OP FROM TO [KEY=VALUE …] [start=TIME], as traffic/start takes it
//   [load NAME]     KEY = VALUE, many flows by one rule: rdma/workload/load_spec.h
//   [at]            TIME = PATH=VALUE [PATH=VALUE …], as clock/at takes it
//   [inject]        NAME = ACTION LINK [KEY=VALUE …], as inject/add takes it, armed at once
//   [sample]        interval=TIME (10us)
//                   NAME = PATH [key=KEY] [rate] [scale=NUMBER] [below=NUMBER]
//                   A number read at each interval: the first of a file, or the one after
//                   KEY in a line; with `rate` how fast it grows by the second; times `scale`.
//                   Values that are not less than `below` before that are left out.
//   [plot]          AXIS = NAME [NAME …], a panel over time with that label and those samples
//   [variant NAME]  PATH = VALUE, knobs of one of the runs that are compared, or load/NAME/KEY =
//                   VALUE, a key of a load; without a variant there is one run
//
// In [flows], [at], [inject], [sample], [knobs] and [variant] a key with {A..B} stands for one line
// for each number from A to B, and so does each such range in its value: f{1..3} = write h{1..3}
// h0. So does a PATH of [at], for one store each in the same line.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/base/time.h"
#include "core/config/topology.h"

namespace rocefs {

// The texts that one with a range {A..B} stands for; itself without one. ERANGE for more than
// `most`.
Result<std::vector<std::string>> expand_range(std::string_view text, uint64_t most);

struct Scenario {
  struct Line {
    std::string key, value;
    int line = 0;  // line of the file
  };
  struct Variant {
    std::string name;
    std::vector<KnobSetting> knobs;
    std::vector<Line> loads;  // load/NAME/KEY, without `load/`
  };
  struct Load {
    std::string name;
    int line = 0;  // of its heading
    std::vector<Line> keys;
  };

  std::string title;
  std::optional<TimeNs> until;
  TimeNs limit = 10 * kSecond;
  bool capture = false;
  int plot_line = 0;  // of the last heading [plot]
  TimeNs interval = 10 * kMicrosecond;
  std::vector<Line> flows, stores, faults, samples, panels;
  std::vector<Variant> variants;
  std::vector<Load> loads;

  // Whether [KIND] or [KIND NAME] is a section of a scenario.
  static bool has_section(std::string_view kind);
  // EINVAL for a name where none is allowed, and for a missing one. `line`: of the heading.
  Result<void> enter(std::string_view kind, const std::string& name, int line);
  // Adds a line of the section entered last. EINVAL or ERANGE for an invalid one.
  Result<void> take(std::string_view kind, const Line& line);
  // The lines that a line with {A..B} in its key stands for; EINVAL for ranges of different
  // lengths, and for too many lines.
  Result<std::vector<Line>> expand(const Line& line);
  // The same of each PATH=VALUE of a line of [at].
  Result<Line> expand_paths(const Line& line);

 private:
  uint64_t expanded_ = 0;
  std::set<std::string> variant_names_, load_names_;
};

}  // namespace rocefs
