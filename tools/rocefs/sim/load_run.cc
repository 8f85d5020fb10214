#include "tools/rocefs/sim/load_run.h"

#include <algorithm>

#include "rdma/nic/device.h"
#include "tools/rocefs/sim/thread_rules.h"

namespace rocefs {
namespace {

// Line of the key of a load, else of the section's heading.
int line_of(const Scenario::Load& section, const Scenario::Variant* variant, std::string_view key) {
  int found = section.line;
  for (const Scenario::Line& line : section.keys) {
    if (line.key == key) found = line.line;
  }
  if (!variant) return found;
  for (const Scenario::Line& line : variant->loads) {
    if (line.key == fmt::format("{}/{}", section.name, key)) found = line.line;
  }
  return found;
}

// A flow of [flows] that is called as one of a load: results tell flows by their names alone.
std::optional<LoadRun::Refusal> ambiguous_flow(const Scenario& scenario) {
  for (const Scenario::Line& flow : scenario.flows) {
    const size_t dot = flow.key.rfind('.');
    if (dot == flow.key.npos || dot + 1 == flow.key.size()) continue;
    if (flow.key.find_first_not_of("0123456789", dot + 1) != flow.key.npos) continue;
    const std::string owner = flow.key.substr(0, dot);
    for (const Scenario::Load& load : scenario.loads) {
      if (load.name != owner) continue;
      return LoadRun::Refusal{
          flow.line, fmt::format("{} is the name of a flow of [load {}]", flow.key, owner)};
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<LoadRun::Refusal> LoadRun::read(const Scenario::Load& section,
                                              const Scenario::Variant* variant,
                                              LoadSpec& spec) const {
  spec.name = section.name;
  for (const Scenario::Line& line : section.keys) {
    Result<void> set = set_load_key(spec, line.key, line.value);
    if (!set) return Refusal{line.line, set.error().reason};
  }
  if (!variant) return std::nullopt;
  const std::string own = spec.name + "/";
  for (const Scenario::Line& line : variant->loads) {
    if (!line.key.starts_with(own)) continue;
    Result<void> set = set_load_key(spec, line.key.substr(own.size()), line.value);
    if (!set) return Refusal{line.line, set.error().reason};
  }
  return std::nullopt;
}

std::optional<LoadRun::Refusal> LoadRun::make(const Scenario::Variant* variant, uint64_t seed,
                                              const std::vector<LoadHost>& hosts,
                                              std::vector<Load>& loads) const {
  if (variant) {
    for (const Scenario::Line& line : variant->loads) {
      const std::string name = line.key.substr(0, line.key.find('/'));
      const auto& all = config_.scenario.loads;
      bool there = std::any_of(all.begin(), all.end(),
                               [&](const Scenario::Load& load) { return load.name == name; });
      if (!there) return Refusal{line.line, fmt::format("no [load {}]", name)};
    }
  }
  for (const Scenario::Load& section : config_.scenario.loads) {
    LoadSpec spec;
    if (std::optional<Refusal> refusal = read(section, variant, spec)) return refusal;
    std::string_view key;
    Result<Load> made =
        make_load(spec, hosts, seed, config_.directory, config_.scenario.until, &key);
    if (!made) {
      return Refusal{line_of(section, variant, key),
                     fmt::format("[load {}]: {}", spec.name, made.error().reason)};
    }
    if (config_.scenario.until && made->start >= *config_.scenario.until) {
      return Refusal{line_of(section, variant, "start"),
                     fmt::format("[load {}]: start={} is not before until=", spec.name,
                                 format_duration(made->start))};
    }
    if (Result<void> fits = check_threads(*made); fabric_.in_regions() && !fits) {
      return Refusal{line_of(section, variant, "pattern"),
                     fmt::format("[load {}]: {}", spec.name, fits.error().reason)};
    }
    for (const std::string& host : made->hosts) {
      const Port& port = *fabric_.port(host);
      if (Result<void> fits = check_flow_ports(spec.flow, port, port); !fits) {
        const std::string& why = fits.error().reason;
        return Refusal{line_of(section, variant, why.starts_with("mtu") ? "mtu" : "gid"),
                       fmt::format("[load {}]: {}: {}", spec.name, host, why)};
      }
    }
    loads.push_back(std::move(*made));
  }
  return std::nullopt;
}

std::optional<LoadRun::Refusal> LoadRun::build(const Scenario::Variant* variant, uint64_t seed) {
  if (std::optional<Refusal> refusal = ambiguous_flow(config_.scenario)) return refusal;
  std::vector<LoadHost> hosts;
  for (const auto& device : fabric_.devices()) {
    for (size_t number = 1; number <= device->port_count(); ++number) {
      std::string port = PortName{device->name(), static_cast<unsigned>(number)}.text();
      if (auto rate = ideal_.rate_bps(port)) hosts.push_back({std::move(port), *rate});
    }
  }
  std::vector<Load> loads;
  if (std::optional<Refusal> refusal = make(variant, seed, hosts, loads)) return refusal;
  for (const Scenario::Variant& other : config_.scenario.variants) {
    if (&other == variant || other.loads.empty()) continue;
    std::vector<Load> unused;
    if (std::optional<Refusal> refusal = make(&other, seed, hosts, unused)) return refusal;
  }
  if (!loads.empty()) {
    workload_ = std::make_unique<Workload>(fabric_, std::move(loads),
                                           static_cast<WorkloadListener&>(*this));
  }
  return std::nullopt;
}

void LoadRun::begin(FlowSink& sink) {
  sink_ = &sink;
  if (!workload_) return;
  counted_ = true;
  ++fabric_.outstanding().flows;
  workload_->begin();
}

void LoadRun::loads_over() {
  if (std::exchange(counted_, false)) --fabric_.outstanding().flows;
}

void LoadRun::load_flow_ended(const LoadFlow& flow) {
  using State = FlowRecord::State;
  if (flow.result && !flow.removed) return tell(flow, State::kDone);
  if (totals_.failed++ == 0) {
    totals_.first_failure = fmt::format("{}.{}: {}", flow.load.name, flow.number,
                                        flow.removed ? "removed" : flow.result.error().reason);
  }
  tell(flow, flow.removed ? State::kRemoved : State::kFailed);
}

void LoadRun::remove_running() {
  if (workload_) workload_->remove_running();
}

void LoadRun::cut_off() {
  if (!workload_) return;
  totals_.stuck = workload_->stuck();
  workload_->each_running(
      [this](const LoadFlow& flow) { tell(flow, FlowRecord::State::kRunning); });
  workload_->stop();
}

void LoadRun::tell(const LoadFlow& flow, FlowRecord::State state) {
  const std::string name = fmt::format("{}.{}", flow.load.name, flow.number);
  FlowSpec spec = flow.load.flow;
  spec.from = flow.load.hosts[flow.what.from];
  spec.to = flow.load.hosts[flow.what.to];
  spec.size = flow.what.bytes;
  Result<double> ideal = ideal_.fct_ns(spec);
  FlowRecord record;
  record.name = name;
  record.load = flow.load.name;
  record.from = spec.from;
  record.to = spec.to;
  if (!flow.result) record.reason = flow.result.error().reason;
  record.op = spec.op;
  record.state = state;
  record.bytes = flow.what.bytes;
  record.start = flow.start;
  record.elapsed = flow.end - flow.start;
  record.ideal_ns = ideal ? *ideal : 0;
  record.moved = flow.stats.bytes.get();
  record.received = flow.stats.received.get();
  record.packets = flow.stats.packets.get();
  record.retransmitted = flow.stats.retransmitted.get();
  record.cnps = flow.stats.cnps.get();
  record.timeouts = flow.stats.timeouts.get();
  sink_->flow_ended(record);
}

void LoadRun::load_round_ended(const Load& load, const RoundTimes& round) {
  std::vector<LoadRounds>& all = totals_.rounds;
  auto found = std::find_if(all.begin(), all.end(),
                            [&](const LoadRounds& one) { return one.load == load.name; });
  if (found == all.end()) found = all.insert(all.end(), {load.name});
  const TimeNs time = round.end - round.start;
  ++found->rounds;
  found->total += time;
  found->shortest = std::min(found->shortest, time);
  found->longest = std::max(found->longest, time);
}

}  // namespace rocefs
