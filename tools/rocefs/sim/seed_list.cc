#include "tools/rocefs/sim/seed_list.h"

#include <algorithm>
#include <cerrno>

#include "core/base/kstrto.h"
#include "core/base/text.h"

namespace rocefs {
namespace {

constexpr size_t kMaxSeeds = 100'000;

Result<uint64_t> seed_of(std::string_view text) {
  Result<uint64_t> seed = kstrtou64(text, 10);
  if (!seed) return errorf(EINVAL, "'{}': a seed is a number", text);
  return seed;
}

Result<void> add_seeds(std::string_view part, std::vector<uint64_t>& seeds) {
  size_t dots = part.find("..");
  Result<uint64_t> first = seed_of(part.substr(0, dots));
  if (!first) return first.error();
  Result<uint64_t> last = dots == part.npos ? first : seed_of(part.substr(dots + 2));
  if (!last) return last.error();
  if (*last < *first) return errorf(EINVAL, "'{}': the range is empty", part);
  if (*last - *first >= kMaxSeeds - seeds.size()) {
    return errorf(E2BIG, "more than {} seeds", kMaxSeeds);
  }
  for (uint64_t seed = *first;; ++seed) {
    seeds.push_back(seed);
    if (seed == *last) return {};
  }
}

}  // namespace

Result<std::vector<uint64_t>> parse_seeds(std::string_view text) {
  std::vector<uint64_t> seeds;
  for (std::string_view part : split(text, ",")) {
    if (Result<void> added = add_seeds(part, seeds); !added) return added.error();
  }
  if (seeds.empty()) return Error{EINVAL, "no seed"};
  std::sort(seeds.begin(), seeds.end());
  auto twice = std::adjacent_find(seeds.begin(), seeds.end());
  if (twice != seeds.end()) return errorf(EINVAL, "seed {} is there twice", *twice);
  return seeds;
}

std::string format_seeds(const std::vector<uint64_t>& seeds) {
  std::string text;
  for (size_t i = 0; i < seeds.size();) {
    size_t last = i;
    while (last + 1 < seeds.size() && seeds[last + 1] == seeds[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += fmt::format("{}", seeds[i]);
    if (last > i) text += fmt::format("{}{}", last == i + 1 ? "," : "..", seeds[last]);
    i = last + 1;
  }
  return text;
}

Result<Shard> parse_shard(std::string_view text) {
  size_t slash = std::min(text.find('/'), text.size());
  Result<uint64_t> index = kstrtou64(text.substr(0, slash), 10);
  Result<uint64_t> count = kstrtou64(text.substr(std::min(slash + 1, text.size())), 10);
  if (!index || !count || *index == 0 || *index > *count) {
    return errorf(EINVAL, "'{}': I/N is wanted, with I from 1 to N", text);
  }
  return Shard{*index, *count};
}

}  // namespace rocefs
