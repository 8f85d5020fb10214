// SimOptions: the command line of `rocefs sim`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "tools/rocefs/sim/seed_list.h"

namespace rocefs {

extern const char* const kSimUsage;

struct SimOptions {
  bool help = false, version = false, flows = false, resume = false, collect = false, view = false;
  std::string file, out;
  std::optional<uint64_t> seed;
  std::vector<uint64_t> seeds;  // of a sweep; empty: one run
  unsigned jobs = 1;
  size_t threads = 0;  // of one run, in regions; 0: the fabric is whole
  Shard shard;
  std::vector<std::string> directories;  // to be collected
};

// EINVAL with the reason. `argv` begins with the subcommand's name.
Result<SimOptions> parse_sim_options(int argc, char** argv);

}  // namespace rocefs
