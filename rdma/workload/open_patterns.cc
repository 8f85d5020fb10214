#include "rdma/workload/open_patterns.h"

#include <strings.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <unordered_map>

#include "core/base/kstrto.h"
#include "core/base/text.h"
#include "core/base/units.h"
#include "rdma/workload/file_text.h"

namespace rocefs {
namespace {

// Another host than `from`, each equally likely.
uint32_t other_host(Rng& rng, uint64_t hosts, uint32_t from) {
  auto to = static_cast<uint32_t>(rng.below(hosts - 1));
  return to + (to >= from ? 1 : 0);
}

}  // namespace

PoissonPattern::PoissonPattern(std::vector<Source> sources, SizeDistribution sizes, TimeNs start)
    : sources_(std::move(sources)), last_(sources_.size(), {start, 0}), sizes_(std::move(sizes)) {
  for (uint32_t from = 0; from < sources_.size(); ++from) {
    if (std::isfinite(sources_[from].mean_gap_ns)) plan_next(from);
  }
}

void PoissonPattern::taken(TimeNs, const FlowStart& flow) {
  plan_next(flow.from);
}

void PoissonPattern::plan_next(uint32_t from) {
  Source& source = sources_[from];
  Last& last = last_[from];
  last.rest -= std::log1p(-source.rng.uniform()) * source.mean_gap_ns;
  const double whole = std::floor(last.rest);
  last.whole = later(last.whole, whole < 9e18 ? static_cast<TimeNs>(whole) : kNever);
  last.rest -= whole;
  uint32_t to = other_host(source.rng, sources_.size(), from);
  const uint64_t bytes = sizes_.at(source.rng.uniform());
  plan(later(last.whole, last.rest < 0.5 ? 0 : 1), {from, to, bytes});
}

IncastPattern::IncastPattern(Rule rule, const Rng& rng)
    : rule_(std::move(rule)), rng_(rng), next_round_(rule_.start) {
  plan_round();
}

// Draws the senders without replacement, of all hosts but the receiver.
void IncastPattern::plan_round() {
  if (round_ >= rule_.rounds) return;
  uint32_t to = rule_.to.empty() ? static_cast<uint32_t>(rng_.below(rule_.hosts))
                                 : rule_.to[round_ % rule_.to.size()];
  std::vector<uint32_t> others;
  others.reserve(rule_.hosts - 1);
  for (uint32_t host = 0; host < rule_.hosts; ++host) {
    if (host != to) others.push_back(host);
  }
  const TimeNs at = next_round_;
  next_round_ = later(at, rule_.interval);
  for (uint64_t i = 0; i < rule_.senders; ++i) {
    std::swap(others[i], others[i + rng_.below(others.size() - i)]);
    TimeNs late = rule_.jitter > 0
                      ? static_cast<TimeNs>(rng_.below(static_cast<uint64_t>(rule_.jitter) + 1))
                      : 0;
    plan(later(at, late), {others[i], to, rule_.sizes.at(rng_.uniform())});
  }
  waiting_ = rule_.senders;
  ++round_;
}

void IncastPattern::taken(TimeNs, const FlowStart&) {
  if (--waiting_ == 0) plan_round();
}

TracePattern::TracePattern(std::vector<Line> lines) : lines_(std::move(lines)) {
  if (!lines_.empty()) plan(lines_[0].at, lines_[0].flow);
}

void TracePattern::taken(TimeNs, const FlowStart&) {
  if (++next_ < lines_.size()) plan(lines_[next_].at, lines_[next_].flow);
}

namespace {

// Places of hosts by name; a name of the topology gets its place when a line has it first.
class TraceHosts {
 public:
  TraceHosts(const std::vector<std::string>& all, std::vector<std::string>& hosts) : hosts_(hosts) {
    for (const std::string& name : all) places_.emplace(name, kUnplaced);
  }
  Result<uint32_t> place(std::string_view name) {
    auto found = places_.find(std::string(name));
    if (found == places_.end()) return errorf(EINVAL, "no device {}", name);
    if (found->second == kUnplaced) {
      found->second = static_cast<uint32_t>(hosts_.size());
      hosts_.emplace_back(name);
    }
    return found->second;
  }

 private:
  static constexpr uint32_t kUnplaced = UINT32_MAX;
  std::unordered_map<std::string, uint32_t> places_;
  std::vector<std::string>& hosts_;
};

bool names_columns(std::string_view line) {
  constexpr std::string_view kFirst = "time";
  return line.size() >= kFirst.size() &&
         ::strncasecmp(line.data(), kFirst.data(), kFirst.size()) == 0;
}

// Whether there is none before a comma, or behind the last one.
bool has_empty_field(std::string_view line) {
  bool empty = true;
  for (char c : line) {
    if (c == ',' && empty) return true;
    if (c != ' ' && c != '\t' && c != '\r') empty = c == ',';
  }
  return empty;
}

struct TracedFlow {
  TimeNs at;
  FlowStart flow;
};

Result<TracedFlow> parse_trace_line(std::string_view line, TraceHosts& hosts) {
  std::vector<std::string_view> words = split(line, ", \t\r");
  if (words.size() != 4 || has_empty_field(line))
    return Error{EINVAL, "TIME,FROM,TO,SIZE is wanted"};
  Result<TimeNs> at = parse_duration(words[0]);
  if (!at) return errorf(EINVAL, "time {}: {}", words[0], at.error().reason);
  Result<uint32_t> from = hosts.place(words[1]);
  if (!from) return from.error();
  Result<uint32_t> to = hosts.place(words[2]);
  if (!to) return to.error();
  if (*from == *to) return errorf(EINVAL, "{} sends to itself", words[1]);
  Result<uint64_t> bytes = parse_size(words[3]);
  if (!bytes) return errorf(EINVAL, "size {}: {}", words[3], bytes.error().reason);
  if (*bytes < 1 || *bytes > kMaxLoadFlow) {
    return errorf(EINVAL, "size {}: a flow has 1 to {} octets", words[3], kMaxLoadFlow);
  }
  return TracedFlow{*at, {*from, *to, *bytes}};
}

}  // namespace

Result<std::unique_ptr<Pattern>> TracePattern::open(const std::string& path,
                                                    const std::vector<std::string>& all,
                                                    TimeNs start, std::vector<std::string>& hosts) {
  std::ifstream file(path);
  if (!file) return errorf(errno, "{}: {}", path, std::strerror(errno));
  TraceHosts places(all, hosts);
  std::vector<Line> lines;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    if (++number == 1) line = std::string(without_byte_order_mark(line));
    line.resize(std::min(line.find('#'), line.size()));
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    if (lines.empty() && names_columns(line)) continue;
    Result<TracedFlow> flow = parse_trace_line(line, places);
    if (!flow) return errorf(EINVAL, "{}:{}: {}", path, number, flow.error().reason);
    TimeNs at = later(start, flow->at);
    if (!lines.empty() && at < lines.back().at) {
      return errorf(EINVAL, "{}:{}: earlier than the line before", path, number);
    }
    lines.push_back({at, flow->flow});
  }
  if (file.bad()) return errorf(EINVAL, "{}: it cannot be read, or is a directory", path);
  if (lines.empty()) return errorf(EINVAL, "{}: no flows", path);
  return std::unique_ptr<Pattern>(new TracePattern(std::move(lines)));
}

}  // namespace rocefs
