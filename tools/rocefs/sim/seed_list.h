// Seeds of a sweep, as --seeds takes them: numbers and ranges, 1..20 or 1,2,5 or 1..3,7.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace rocefs {

// In rising order. EINVAL for anything else and for a seed that is there twice; E2BIG for more than
// 100,000.
Result<std::vector<uint64_t>> parse_seeds(std::string_view text);
// The shortest text that parse_seeds() takes.
std::string format_seeds(const std::vector<uint64_t>& seeds);

// Part I of N, from 1.
struct Shard {
  uint64_t index = 1, count = 1;
};
// I/N. EINVAL.
Result<Shard> parse_shard(std::string_view text);

}  // namespace rocefs
