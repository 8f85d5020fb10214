// PccAlgorithm: a congestion control algorithm as a slot holds it, built in or from a plugin.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "pcc/api/libmango.h"

namespace rocefs {

struct PccAlgorithm {
  struct Parameter {
    std::string name;
    mango_pcc_param_type_e type;
    size_t offset;
    // Bounds of values that are set from outside.
    double min = -std::numeric_limits<double>::infinity();
    double max = std::numeric_limits<double>::infinity();
    std::string not_above = {};  // name of a parameter whose value is the upper bound; empty: none
  };
  std::string name;  // may be empty in a user's program
  std::string desc;
  mango_pcc_algo_fn* legacy = nullptr;
  mango_pcc_algo_event_fn* event = nullptr;  // takes precedence over `legacy`
  uint32_t metrics = 0;                      // of `event`; `legacy` reads all metrics
  std::vector<uint8_t> initial;              // initial bytes of each queue pair's copy
  std::vector<Parameter> parameters;         // in order of registration
  // Called for each queue pair when this algorithm takes the place of another; may be null.
  mango_pcc_algo_keep_fn* keep = nullptr;
  // Values that were set since it was added, as text, by name of the parameter.
  std::map<std::string, std::string> settings = {};
};

// Sink of log lines. May be called on any poller's thread; `text` includes its prefix.
using PccLog = std::function<void(mango_log_level_e level, std::string_view text)>;

// True for 1 to 31 characters that break no path, pattern, command line or CSV, except for words
// that mean something else there.
inline constexpr std::string_view kNoNameHas = "/=,*?\\'\"";
inline bool valid_algorithm_name(std::string_view name) {
  constexpr size_t kMaxLength = 31;
  auto allowed = [](char c) {
    return c > ' ' && c <= '~' && kNoNameHas.find(c) == kNoNameHas.npos;
  };
  return !name.empty() && name.size() <= kMaxLength && name[0] != '-' && name != "." &&
         name != ".." && name != "none" && name != "all" &&
         std::all_of(name.begin(), name.end(), allowed);
}

}  // namespace rocefs
