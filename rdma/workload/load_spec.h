// LoadSpec: a section [load NAME] of the ini file: many flows by one rule.
//
//   pattern=   poisson       each host starts flows at random, to hosts at random
//              incast        `senders` hosts at once send to one, each `interval`
//              permutation   each host sends to another one, each host receives from one
//              all-to-all    each host sends to each other one, `parallel` at a time
//              ring-allreduce, tree-allreduce
//              trace         the flows of a file
//              goal          the sends of a schedule, each when what it waits for is over
//
// Keys of all: hosts=PORT…, start=TIME, until=TIME, flows=N, op=write|send|read, and mtu=, window=,
// timeout=, retry=, gid= as in traffic/start.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/base/time.h"
#include "rdma/traffic/flow_spec.h"
#include "rdma/workload/pattern.h"
#include "rdma/workload/size_distribution.h"

namespace rocefs {

enum class LoadPattern : uint8_t {
  kPoisson,
  kIncast,
  kPermutation,
  kAllToAll,
  kRingAllReduce,
  kTreeAllReduce,
  kTrace,
  kGoal,
};

// A port that may take part, and the rate of its cable.
struct LoadHost {
  std::string port;
  uint64_t rate_bps = 0;
};

struct LoadSpec {
  std::string name;
  std::optional<LoadPattern> pattern;
  FlowSpec flow;  // of each flow, but for name, ends and size; verify is off
  std::vector<std::string> hosts, to;
  std::optional<uint64_t> size;
  std::string cdf, file;
  double load = 0;  // of the rate of a host's cable
  TimeNs start = 0, interval = 0, jitter = 0, gap = 0;
  std::optional<TimeNs> until;
  uint64_t flows = UINT64_MAX, senders = 0, rounds = 1, parallel = 1;
  uint32_t given = 0;  // bits of the keys that were set
};

// Sets a key of the section. EINVAL or ERANGE with the reason.
Result<void> set_load_key(LoadSpec& load, std::string_view key, std::string_view value);

// Reads `NAME KEY=VALUE …`, as the file loads/start takes it; words without = belong to the value
// before them. EINVAL and ERANGE as set_load_key(), and for keys that name files: those of a store
// are not the mount's to open.
Result<LoadSpec> parse_load(std::string_view line);

// A load that can run: its hosts and its pattern.
struct Load {
  std::string name;
  FlowSpec flow;
  std::vector<std::string> hosts;
  std::unique_ptr<Pattern> pattern;
  TimeNs start = 0;             // none starts before
  TimeNs until = kNever;        // no flow starts from then on
  uint64_t flows = UINT64_MAX;  // at most
};

// Checks the whole section against the hosts that there are, `all` of the topology, and makes its
// pattern. `directory`: where files of the section are, with a / at its end. `until`: the run's
// end, if it has one. EINVAL for a key that is missing or does not go with the pattern, for unknown
// hosts, and for a load that cannot be; `refused`, if not null, is then the key whose value is the
// reason, empty if no single one is.
Result<Load> make_load(const LoadSpec& spec, const std::vector<LoadHost>& all, uint64_t seed,
                       const std::string& directory, std::optional<TimeNs> until,
                       std::string_view* refused = nullptr);

}  // namespace rocefs
