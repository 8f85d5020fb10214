// SimOptions: the command line of `rocefs sim`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/result.h"

namespace rocefs {

extern const char* const kSimUsage;

struct SimOptions {
  bool help = false, flows = false;
  std::string file, out;
  std::optional<uint64_t> seed;
};

// EINVAL with the reason. `argv` begins with the subcommand's name.
Result<SimOptions> parse_sim_options(int argc, char** argv);

}  // namespace rocefs
