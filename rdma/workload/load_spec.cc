#include "rdma/workload/load_spec.h"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "core/base/kstrto.h"
#include "core/base/text.h"
#include "core/base/units.h"
#include "core/config/scenario.h"
#include "rdma/workload/collectives.h"
#include "rdma/workload/goal_pattern.h"
#include "rdma/workload/open_patterns.h"

namespace rocefs {
namespace {

constexpr std::string_view kPatterns[] = {
    "poisson",        "incast",         "permutation", "all-to-all",
    "ring-allreduce", "tree-allreduce", "trace",       "goal"};

constexpr uint32_t bit(LoadPattern pattern) {
  return 1u << static_cast<unsigned>(pattern);
}
constexpr uint32_t kRandomSizes = bit(LoadPattern::kPoisson) | bit(LoadPattern::kIncast);
constexpr uint32_t kCollectives = bit(LoadPattern::kPermutation) | bit(LoadPattern::kAllToAll) |
                                  bit(LoadPattern::kRingAllReduce) |
                                  bit(LoadPattern::kTreeAllReduce);
constexpr uint32_t kEvery = ~0u;
constexpr uint32_t kOwnHosts = kEvery & ~bit(LoadPattern::kTrace);
constexpr uint32_t kFiles = bit(LoadPattern::kTrace) | bit(LoadPattern::kGoal);
constexpr uint32_t kSized = kEvery & ~kFiles;
// The direction of the octets makes these, and a READ fetches them.
constexpr uint32_t kDirected = bit(LoadPattern::kIncast) | bit(LoadPattern::kRingAllReduce) |
                               bit(LoadPattern::kTreeAllReduce) | bit(LoadPattern::kGoal);

Result<void> set_names(std::string_view value, std::vector<std::string>& names) {
  names.clear();
  constexpr uint64_t kMost = 2 * kMaxDevices;  // ports
  for (std::string_view word : split(value, " \t,")) {
    Result<std::vector<std::string>> more = expand_range(word, kMost - names.size());
    if (!more) return more.error();
    std::move(more->begin(), more->end(), std::back_inserter(names));
  }
  if (names.empty()) return Error{EINVAL, "names of ports are wanted"};
  return {};
}

Result<void> set_number(std::string_view value, uint64_t min, uint64_t& number) {
  Result<uint64_t> parsed = kstrtou64(value, 0);
  if (!parsed) return errorf(EINVAL, "{}: a number is wanted", quoted(value));
  if (*parsed < min) return errorf(EINVAL, "{} is less than {}", *parsed, min);
  number = *parsed;
  return {};
}

Result<void> set_pattern(std::string_view value, std::optional<LoadPattern>& pattern) {
  auto found = std::find(std::begin(kPatterns), std::end(kPatterns), value);
  if (found == std::end(kPatterns)) {
    return errorf(EINVAL, "{}: {} is wanted", quoted(value), fmt::join(kPatterns, ", "));
  }
  pattern = static_cast<LoadPattern>(found - std::begin(kPatterns));
  return {};
}

Result<void> set_op(std::string_view value, FlowOp& op) {
  Result<FlowOp> parsed = parse_flow_op(value);
  if (!parsed) return parsed.error();
  if (*parsed != FlowOp::kWrite && *parsed != FlowOp::kSend && *parsed != FlowOp::kRead) {
    return errorf(EINVAL, "{}: write, send or read is wanted", value);
  }
  op = *parsed;
  return {};
}

Result<void> set_share(std::string_view value, double& share) {
  Result<double> parsed = parse_probability(value);
  if (parsed && *parsed > 0) {
    share = *parsed;
    return {};
  }
  return errorf(EINVAL, "{} of a host's rate cannot be: above 0, at most 1 is wanted", value);
}

template <class T>
Result<void> set_parsed(Result<T> parsed, T& out) {
  if (!parsed) return parsed.error();
  out = *parsed;
  return {};
}

struct LoadKey {
  std::string_view name;
  uint32_t patterns;  // that it goes with
  Result<void> (*set)(LoadSpec& load, std::string_view value);
};

using Value = std::string_view;
constexpr LoadKey kKeys[] = {
    {"pattern", kEvery, [](LoadSpec& to, Value v) { return set_pattern(v, to.pattern); }},
    {"hosts", kOwnHosts, [](LoadSpec& to, Value v) { return set_names(v, to.hosts); }},
    {"to", bit(LoadPattern::kIncast), [](LoadSpec& to, Value v) { return set_names(v, to.to); }},
    {"op", kEvery, [](LoadSpec& to, Value v) { return set_op(v, to.flow.op); }},
    {"load", bit(LoadPattern::kPoisson),
     [](LoadSpec& to, Value v) { return set_share(v, to.load); }},
    {"cdf", kRandomSizes,
     [](LoadSpec& to, Value v) -> Result<void> {
       to.cdf = v;
       return {};
     }},
    {"size", kSized,
     [](LoadSpec& to, Value v) { return set_parsed(parse_size(v), to.size.emplace()); }},
    {"file", kFiles,
     [](LoadSpec& to, Value v) -> Result<void> {
       to.file = v;
       return {};
     }},
    {"start", kEvery,
     [](LoadSpec& to, Value v) { return set_parsed(parse_duration(v), to.start); }},
    {"until", kEvery,
     [](LoadSpec& to, Value v) { return set_parsed(parse_duration(v), to.until.emplace()); }},
    {"flows", kEvery, [](LoadSpec& to, Value v) { return set_number(v, 1, to.flows); }},
    {"senders", bit(LoadPattern::kIncast),
     [](LoadSpec& to, Value v) { return set_number(v, 1, to.senders); }},
    {"interval", bit(LoadPattern::kIncast),
     [](LoadSpec& to, Value v) { return set_parsed(parse_duration(v), to.interval); }},
    {"rounds", kCollectives | bit(LoadPattern::kIncast),
     [](LoadSpec& to, Value v) { return set_number(v, 1, to.rounds); }},
    {"parallel", bit(LoadPattern::kAllToAll),
     [](LoadSpec& to, Value v) { return set_number(v, 1, to.parallel); }},
    {"gap", kCollectives,
     [](LoadSpec& to, Value v) { return set_parsed(parse_duration(v), to.gap); }},
    {"jitter", kCollectives | bit(LoadPattern::kIncast),
     [](LoadSpec& to, Value v) { return set_parsed(parse_duration(v), to.jitter); }},
};
constexpr std::string_view kFlowKeys[] = {"mtu", "window", "timeout", "retry", "gid"};

std::string key_names() {
  std::string names;
  for (const LoadKey& key : kKeys) names.append(key.name).append(", ");
  return fmt::format("{}{}", names, fmt::join(kFlowKeys, ", "));
}

}  // namespace

Result<void> set_load_key(LoadSpec& load, std::string_view key, std::string_view value) {
  if (std::find(std::begin(kFlowKeys), std::end(kFlowKeys), key) != std::end(kFlowKeys)) {
    return set_flow_key(load.flow, key, value);
  }
  for (const LoadKey& one : kKeys) {
    if (one.name != key) continue;
    load.given |= 1u << (&one - kKeys);
    Result<void> set = one.set(load, value);
    return set ? set : errorf(set.error().code, "{}: {}", key, set.error().reason);
  }
  return errorf(EINVAL, "unknown key {} in [load]: {}", key, key_names());
}

Result<LoadSpec> parse_load(std::string_view line) {
  std::vector<std::string_view> words = split(line, " \t\n");
  if (words.size() < 2) return Error{EINVAL, "NAME pattern=… [KEY=VALUE …] is wanted"};
  LoadSpec spec;
  spec.name = words[0];
  if (!valid_entry_name(spec.name) || spec.name == "start") {
    return errorf(EINVAL, "{} cannot be a load's name", quoted(spec.name));
  }
  for (size_t i = 1; i < words.size();) {
    size_t equals = words[i].find('=');
    if (equals == words[i].npos) return errorf(EINVAL, "{}: KEY=VALUE is wanted", quoted(words[i]));
    std::string_view key = words[i].substr(0, equals);
    std::string value(words[i].substr(equals + 1));
    for (++i; i < words.size() && words[i].find('=') == words[i].npos; ++i) {
      value.append(" ").append(words[i]);
    }
    if (Result<void> set = set_load_key(spec, key, value); !set) return set.error();
  }
  if (!spec.file.empty() || (spec.pattern && (kFiles & bit(*spec.pattern)))) {
    return errorf(EINVAL, "pattern={} names a file: that is for rocefs sim alone",
                  spec.pattern ? kPatterns[static_cast<size_t>(*spec.pattern)] : "trace");
  }
  if (!spec.cdf.empty()) {
    Result<SizeDistribution> known = SizeDistribution::named(spec.cdf);
    if (!known) return errorf(known.error().code, "cdf: {}", known.error().reason);
  }
  return spec;
}

namespace {

// Makes a load of a section whose keys are set.
class LoadMaker {
 public:
  LoadMaker(const LoadSpec& spec, const std::vector<LoadHost>& all, uint64_t seed,
            const std::string& directory, std::optional<TimeNs> until)
      : spec_(spec), all_(all), seed_(seed), directory_(directory) {
    load_.name = spec.name;
    load_.flow = spec.flow;
    load_.flow.verify = false;
    load_.start = spec.start;
    load_.until = std::min(spec.until.value_or(kNever), until.value_or(kNever));
    load_.flows = spec.flows;
  }
  Result<Load> make() {
    if (!spec_.pattern) return errorf(EINVAL, "pattern= is wanted: {}", fmt::join(kPatterns, ", "));
    Result<void> made = check_keys();
    if (made) made = take_hosts();
    if (made) made = take_sizes();
    if (made) made = make_pattern();
    if (!made) return made.error();
    return std::move(load_);
  }
  // Key whose value make() has refused.
  std::string_view refused() const { return refused_; }

 private:
  Error of_key(std::string_view key, Error why) {
    refused_ = key;
    return why;
  }

  LoadPattern pattern() const { return *spec_.pattern; }
  std::string_view pattern_name() const { return kPatterns[static_cast<size_t>(pattern())]; }

  Result<void> check_keys() {
    for (const LoadKey& key : kKeys) {
      bool given = spec_.given >> (&key - kKeys) & 1;
      if (given && !(key.patterns & bit(pattern()))) {
        return of_key(key.name,
                      errorf(EINVAL, "{}= does not go with pattern={}", key.name, pattern_name()));
      }
    }
    if (spec_.flow.op == FlowOp::kRead && (kDirected & bit(pattern()))) {
      return of_key("op", errorf(EINVAL,
                                 "op=read does not go with pattern={}: its octets would go the "
                                 "other way",
                                 pattern_name()));
    }
    if (spec_.until && *spec_.until <= spec_.start) {
      return of_key("until", {EINVAL, "start= is not before until="});
    }
    return {};
  }

  Result<void> take_hosts() {
    for (const LoadHost& host : all_) rates_.emplace(host.port, host.rate_bps);
    if (pattern() == LoadPattern::kTrace) return {};
    load_.hosts = spec_.hosts;
    if (load_.hosts.empty()) {
      for (const LoadHost& host : all_) load_.hosts.push_back(host.port);
    }
    for (uint32_t place = 0; place < load_.hosts.size(); ++place) {
      const std::string& host = load_.hosts[place];
      if (!rates_.contains(host))
        return of_key("hosts", errorf(EINVAL, "hosts: no device {}", host));
      if (!places_.emplace(host, place).second)
        return of_key("hosts", errorf(EINVAL, "hosts: {} twice", host));
    }
    if (load_.hosts.size() < 2) return of_key("hosts", {EINVAL, "hosts: at least two are wanted"});
    return {};
  }

  Result<void> take_sizes() {
    if (kFiles & bit(pattern())) return {};
    if (spec_.size && !spec_.cdf.empty())
      return of_key("cdf", {EINVAL, "size= and cdf=: one of them"});
    if (!spec_.cdf.empty()) {
      Result<SizeDistribution> read = SizeDistribution::read(spec_.cdf, directory_);
      if (!read) return of_key("cdf", errorf(read.error().code, "cdf: {}", read.error().reason));
      sizes_ = *read;
      return {};
    }
    bool random = kRandomSizes & bit(pattern());
    if (!spec_.size) return errorf(EINVAL, "size={} is wanted", random ? " or cdf=" : "");
    if (*spec_.size < 1 || *spec_.size > kMaxLoadFlow) {
      return of_key("size",
                    errorf(EINVAL, "size={} is outside 1 to {}", *spec_.size, kMaxLoadFlow));
    }
    sizes_ = SizeDistribution::fixed(*spec_.size);
    return {};
  }

  Rng rng(std::string_view of = {}) const {
    return Rng(seed_, fmt::format("load/{}/{}", spec_.name, of));
  }

  Result<void> make_pattern() {
    switch (pattern()) {
      case LoadPattern::kPoisson:
        return make_poisson();
      case LoadPattern::kIncast:
        return make_incast();
      case LoadPattern::kTrace:
        return make_trace();
      case LoadPattern::kGoal:
        return make_goal();
      default:
        return make_collective();
    }
  }

  Result<void> make_poisson() {
    if (spec_.load == 0) return Error{EINVAL, "load= is wanted: the share of a host's rate"};
    if (load_.until == kNever && load_.flows == UINT64_MAX) {
      return Error{EINVAL, "until= or flows= is wanted, or [sim] until=: else it never ends"};
    }
    std::vector<PoissonPattern::Source> sources;
    for (const std::string& host : load_.hosts) {
      auto rate = static_cast<double>(rates_.at(host));
      const double gap_ns = sizes_.mean() * 8e9 / (spec_.load * rate);
      if (gap_ns < 1) {
        return of_key(
            "load", errorf(EINVAL, "a flow of {} octets each {} ns at {}: at least 1 ns is wanted",
                           sizes_.mean(), gap_ns, host));
      }
      sources.push_back({gap_ns, rng(host)});
    }
    load_.pattern =
        std::make_unique<PoissonPattern>(std::move(sources), std::move(sizes_), spec_.start);
    return {};
  }

  Result<void> make_incast() {
    IncastPattern::Rule rule{load_.hosts.size(), {},          spec_.senders,
                             std::move(sizes_),  spec_.start, spec_.interval,
                             spec_.jitter,       spec_.rounds};
    for (const std::string& host : spec_.to) {
      auto place = places_.find(host);
      if (place == places_.end())
        return of_key("to", errorf(EINVAL, "to: {} is none of hosts=", host));
      rule.to.push_back(place->second);
    }
    if (rule.senders == 0) rule.senders = rule.hosts - 1;
    if (rule.senders > rule.hosts - 1) {
      return of_key("senders", errorf(EINVAL, "senders={}: {} hosts can send to one", rule.senders,
                                      rule.hosts - 1));
    }
    if (rule.interval == 0 && rule.rounds > 1) {
      return of_key("rounds", errorf(EINVAL, "interval= is wanted with rounds={}", rule.rounds));
    }
    bool rounds = spec_.given & key_bit("rounds");
    if (rule.interval > 0 && !rounds) {
      rule.rounds = UINT64_MAX;
      if (load_.until == kNever && load_.flows == UINT64_MAX) {
        return Error{EINVAL,
                     "rounds=, until= or flows= is wanted with interval=: else it never ends"};
      }
    }
    // Each round is planned when the one before has begun, so that the rounds to come take no
    // memory.
    if (rule.rounds > 1 && rule.jitter > rule.interval) {
      return of_key("jitter", errorf(EINVAL, "jitter={} is longer than interval={}",
                                     format_duration(rule.jitter), format_duration(rule.interval)));
    }
    load_.pattern = std::make_unique<IncastPattern>(std::move(rule), rng());
    return {};
  }

  static constexpr uint32_t key_bit(std::string_view name) {
    for (const LoadKey& key : kKeys) {
      if (key.name == name) return 1u << (&key - kKeys);
    }
    return 0;
  }

  std::string path() const {
    return spec_.file.starts_with('/') ? spec_.file : directory_ + spec_.file;
  }

  Result<void> make_goal() {
    if (spec_.file.empty()) return Error{EINVAL, "file= is wanted"};
    auto goal = GoalPattern::open(path(), load_.hosts.size(), spec_.start);
    if (!goal) return of_key("file", goal.error());
    load_.pattern = std::move(*goal);
    return {};
  }

  Result<void> make_trace() {
    if (spec_.file.empty()) return Error{EINVAL, "file= is wanted"};
    std::vector<std::string> names;
    for (const LoadHost& host : all_) names.push_back(host.port);
    Result<std::unique_ptr<Pattern>> trace =
        TracePattern::open(path(), names, spec_.start, load_.hosts);
    if (!trace) return of_key("file", trace.error());
    load_.pattern = std::move(*trace);
    return {};
  }

  Result<void> make_collective() {
    const Collective::Rule rule{static_cast<uint32_t>(load_.hosts.size()),
                                *spec_.size,
                                spec_.rounds,
                                spec_.parallel,
                                spec_.start,
                                spec_.gap,
                                spec_.jitter};
    switch (pattern()) {
      case LoadPattern::kPermutation:
        load_.pattern = std::make_unique<PermutationPattern>(rule, rng());
        break;
      case LoadPattern::kAllToAll:
        load_.pattern = std::make_unique<AllToAllPattern>(rule, rng());
        break;
      case LoadPattern::kRingAllReduce:
        load_.pattern = std::make_unique<RingAllReducePattern>(rule, rng());
        break;
      default:
        load_.pattern = std::make_unique<TreeAllReducePattern>(rule, rng());
    }
    return {};
  }

  const LoadSpec& spec_;
  const std::vector<LoadHost>& all_;
  const uint64_t seed_;
  const std::string& directory_;
  std::unordered_map<std::string, uint64_t> rates_;
  std::unordered_map<std::string, uint32_t> places_;
  SizeDistribution sizes_ = SizeDistribution::fixed(1);
  Load load_;
  std::string_view refused_;
};

}  // namespace

Result<Load> make_load(const LoadSpec& spec, const std::vector<LoadHost>& all, uint64_t seed,
                       const std::string& directory, std::optional<TimeNs> until,
                       std::string_view* refused) {
  LoadMaker maker(spec, all, seed, directory, until);
  Result<Load> made = maker.make();
  if (refused) *refused = maker.refused();
  return made;
}

}  // namespace rocefs
